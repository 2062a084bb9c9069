// Pages with the real AbstractChat of AI SDK 5, 6 and 7 behind DefaultChatTransport. A line of JSON in, one out:
//   {"do": "open", "page": "a", "version": 7, "api": url, "id": chat, "messages": […]}
//   {"do": "send" | "regenerate" | "resume" | "stop" | "approve" | "answer", "page": "a", "with": argument}
// begin something and answer at once; `{"do": "see", "page": "a", "until": …}` waits for a status once all that was begun
// is done, or for a text on the page (`{"text": …}`) or a number of answers (`{"posts": …}`), and says {status, messages, error, finished, posts}.
import { createInterface } from 'node:readline';

globalThis.AI_SDK_LOG_WARNINGS = false;
const SDK = { 5: await import('ai5'), 6: await import('ai6'), 7: await import('ai7') };
const pages = {};

class State {
  status = 'ready';
  error = undefined;
  constructor(messages) {
    this.messages = messages;
  }
  pushMessage = message => (this.messages = [...this.messages, message]);
  popMessage = () => (this.messages = this.messages.slice(0, -1));
  replaceMessage = (index, message) => (this.messages = this.messages.with(index, this.snapshot(message)));
  snapshot = value => structuredClone(value);
}

function open({ page, version, api, id, messages = [], body, automatic = true }) {
  const sdk = SDK[version];
  class Chat extends sdk.AbstractChat {}
  let number = 0;
  const opened = (pages[page] = { finished: [], posts: [], busy: 0 });
  const answered = automatic ? sdk.lastAssistantMessageIsCompleteWithApprovalResponses : undefined;
  const watched = async (url, init) => {
    const response = await fetch(url, init);
    opened.posts.push([init?.method ?? 'GET', response.status]);
    return response;
  };
  opened.chat = new Chat({
    id,
    state: new State(messages),
    generateId: () => `${page}-${number++}`,
    transport: new sdk.DefaultChatTransport({ api, body, fetch: watched }),
    sendAutomaticallyWhen: answered,
    onFinish: ({ isAbort, isDisconnect, isError, finishReason }) =>
      opened.finished.push({ isAbort, isDisconnect, isError, finishReason }),
    onError: () => {},
  });
}

const DO = {
  send: (chat, argument) => chat.sendMessage(argument),
  regenerate: (chat, argument) => chat.regenerate(argument),
  resume: chat => chat.resumeStream(),
  stop: chat => chat.stop(),
  approve: (chat, argument) => chat.addToolApprovalResponse(argument),
  answer: (chat, argument) => chat.addToolOutput(argument),
};

function shows({ chat, busy, posts }, until) {
  if (until.posts !== undefined) return posts.length >= until.posts;
  return until.text === undefined ? !busy && chat.status === until : JSON.stringify(chat.messages).includes(until.text);
}

function begin(page, action, argument) {
  page.busy += 1;
  const done = () => (page.busy -= 1);
  Promise.resolve(action(page.chat, argument)).then(done, done);
}

async function see({ page, until, seconds = 20 }) {
  const { chat, finished, posts } = pages[page];
  const deadline = Date.now() + seconds * 1000;
  while (until !== undefined && !shows(pages[page], until) && Date.now() < deadline) await new Promise(r => setTimeout(r, 5));
  return { status: chat.status, messages: chat.messages, error: chat.error?.message, finished, posts };
}

for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
  const order = JSON.parse(line);
  let told = {};
  if (order.do === 'open') open(order);
  else if (order.do === 'see') told = await see(order);
  else begin(pages[order.page], DO[order.do], order.with);
  process.stdout.write(`${JSON.stringify(told)}\n`);
}
process.exit(0);
