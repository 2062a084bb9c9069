export const meta = {name: 'two', description: 'two agents', phases: [{title: 'One'}, {title: 'Two'}]}
phase('One')
const a = await agent('WF-A: do it', {label: 'a'})
phase('Two')
const [b, c] = await parallel([() => agent('WF-B: do it', {label: 'b'}), () => agent('WF-C: answer', {label: 'c', schema: {type:'object',properties:{n:{type:'integer'}},required:['n']}})])
return {a, b, c}
