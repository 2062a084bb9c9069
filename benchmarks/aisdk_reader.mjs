// Times the real readers on chunk streams: a line of JSON {"version", "chunks", "rounds"} in, seconds a round out.
// The chunks are objects already, as they are for ours: only reading is timed, with every snapshot taken.
import { createRequire } from 'node:module';
import { createInterface } from 'node:readline';

const require = createRequire(new URL('../tests/conformance/package.json', import.meta.url));
const SDK = { 5: require('ai5'), 6: require('ai6'), 7: require('ai7') };

for await (const line of createInterface({ input: process.stdin })) {
  const { version, chunks, rounds } = JSON.parse(line);
  const seconds = [];
  for (let round = 0; round < rounds; round++) {
    const copies = structuredClone(chunks);
    const before = process.hrtime.bigint();
    const stream = new ReadableStream({
      start(controller) {
        for (const chunk of copies) controller.enqueue(chunk);
        controller.close();
      },
    });
    for await (const _ of SDK[version].readUIMessageStream({ stream }));
    seconds.push(Number(process.hrtime.bigint() - before) / 1e9);
  }
  console.log(JSON.stringify(seconds));
}
