// Asks the real AI SDK 5, 6 and 7. A line of JSON in, a line of JSON out:
//   {"op": "read", "version": 5, "items": [...]}  ->  {"results": [...]}, one for each item in its order.
// What each operation takes and gives stands above its function. Undefined is absent, as JSON has it.
import { createInterface } from 'node:readline';

globalThis.AI_SDK_LOG_WARNINGS = false;
const SDK = { 5: await import('ai5'), 6: await import('ai6'), 7: await import('ai7') };

const problem = error => ({
  name: error?.name,
  message: String(error?.message ?? error),
  chunkType: error?.chunkType,
  chunkId: error?.chunkId,
});

// The stream as a browser gets it: server-sent events, parsed and checked by the SDK's own transport.
function received(sdk, sse) {
  const transport = new sdk.DefaultChatTransport({
    api: 'http://127.0.0.1/chat',
    fetch: async () => new Response(sse, { headers: { 'content-type': 'text/event-stream' } }),
  });
  return transport.sendMessages({
    trigger: 'submit-message',
    chatId: 'chat',
    messageId: undefined,
    messages: [],
    abortSignal: undefined,
  });
}

// {sse, message?, all?} -> {message, count, snapshots (if all), errors}
async function read(sdk, { sse, message, all = false }) {
  const errors = [];
  const snapshots = [];
  let count = 0;
  let last;
  const stream = await received(sdk, sse);
  const onError = error => errors.push(problem(error));
  for await (const snapshot of sdk.readUIMessageStream({ message, stream, onError })) {
    count += 1;
    last = snapshot;
    if (all) snapshots.push(snapshot);
  }
  return { message: last, count, snapshots, errors };
}

// {sse, messages, trigger, messageId?} -> {messages, error}, as `useChat` has them at the end of one answer
async function chat(sdk, { sse, messages, trigger, messageId }) {
  const state = {
    status: 'ready',
    error: undefined,
    messages,
    pushMessage: message => (state.messages = [...state.messages, message]),
    popMessage: () => (state.messages = state.messages.slice(0, -1)),
    replaceMessage: (index, message) => (state.messages = state.messages.with(index, state.snapshot(message))),
    snapshot: value => structuredClone(value),
  };
  class Page extends sdk.AbstractChat {}
  const page = new Page({
    id: 'chat',
    generateId: () => 'made',
    state,
    transport: new sdk.DefaultChatTransport({
      api: 'http://127.0.0.1/chat',
      fetch: async () => new Response(sse, { headers: { 'content-type': 'text/event-stream' } }),
    }),
  });
  await page.makeRequest({ trigger, messageId });
  return { messages: state.messages, error: state.error && problem(state.error) };
}

// a chunk -> whether a client takes it
async function chunk(sdk, value) {
  const schema = typeof sdk.uiMessageChunkSchema === 'function' ? sdk.uiMessageChunkSchema() : sdk.uiMessageChunkSchema;
  return (await schema.validate(value)).success;
}

// Schemas that both sides can tell: a list of JSON types that are accepted.
function schemaOf(sdk, types) {
  const kind = value => (value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value);
  return sdk.jsonSchema({}, {
    validate: value =>
      types.includes(kind(value)) ? { success: true, value } : { success: false, error: new Error(`no ${kind(value)}`) },
  });
}

const mapped = (object, change) =>
  object && Object.fromEntries(Object.entries(object).map(([key, value]) => [key, change(value)]));

// {messages, metadata?, data?, tools?: {name: {input, output?}}} -> {messages} or {error}
async function validate(sdk, { messages, metadata, data, tools }) {
  const result = await sdk.safeValidateUIMessages({
    messages,
    metadataSchema: metadata && schemaOf(sdk, metadata),
    dataSchemas: mapped(data, types => schemaOf(sdk, types)),
    tools: mapped(tools, ({ input, output }) => ({
      inputSchema: schemaOf(sdk, input),
      outputSchema: output && schemaOf(sdk, output),
    })),
  });
  return result.success ? { messages: result.data } : { error: problem(result.error) };
}

// What a tool and an application say themselves: what they were given.
const toModelOutput = given => ({ type: 'json', value: given });
const convertDataPart = part => (part.type === 'data-a' ? { type: 'text', text: 'data', given: part } : undefined);

// {messages, options?, tools?: {name: whether it says its outputs itself}, data?} -> {messages} or {error}
async function model(sdk, { messages, options, tools, data = false }) {
  const known = mapped(tools, itself => (itself ? { toModelOutput } : {}));
  try {
    return {
      messages: await sdk.convertToModelMessages(messages, {
        ...options,
        ...(known && { tools: known }),
        ...(data && { convertDataPart }),
      }),
    };
  } catch (error) {
    return { error: problem(error) };
  }
}

// {messages, options} -> {messages} or {error}
async function prune(sdk, { messages, options }) {
  try {
    return { messages: sdk.pruneMessages({ messages, ...options }) };
  } catch (error) {
    return { error: problem(error) };
  }
}

// {chunks, messages} -> {message, isContinuation, isAborted, finishReason}, as a server has it to keep at the end
async function kept(sdk, { chunks, messages }) {
  let told = {};
  const keep = ({ responseMessage: message, isContinuation, isAborted, finishReason }) =>
    (told = { message, isContinuation, isAborted, finishReason });
  const stream = sdk.createUIMessageStream({
    execute: ({ writer }) => chunks.forEach(chunk => writer.write(chunk)),
    originalMessages: messages,
    generateId: () => 'made',
    [sdk === SDK[7] ? 'onEnd' : 'onFinish']: keep,
  });
  const reader = stream.getReader();
  try {
    while (!(await reader.read()).done);
  } catch (error) {
    told = { ...told, error: problem(error) };
  }
  return told;
}

// text -> {state, value}
const partial = (sdk, text) => sdk.parsePartialJson(text);

// null -> the headers of a response with a stream
const headers = sdk => sdk.UI_MESSAGE_STREAM_HEADERS;

const OPERATIONS = { read, chat, kept, chunk, validate, model, prune, partial, headers };

for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
  const { op, version, items } = JSON.parse(line);
  const results = [];
  for (const item of items) results.push(await OPERATIONS[op](SDK[version], item));
  process.stdout.write(`${JSON.stringify({ results })}\n`);
}
