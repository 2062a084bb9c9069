// turnlog's plugin for OpenCode: tells turnlog what happens, the moment it happens.
//
// `turnlog hooks remove opencode` takes it away. It hands every event to the server that listens on `server.sock` in
// turnlog's folder, else appends it to the session's spool there. Only the user can make that socket; a port that a
// server has left may be anybody's. It never throws, and nothing waits for it: what it does runs behind OpenCode's own
// work, one event after the other.

import { appendFile, lstat, mkdir } from "node:fs/promises"
import { connect } from "node:net"
import { join } from "node:path"

const FOLDER = "{{FOLDER}}"
const AGENT = "opencode"
const SOCKET = join(FOLDER, "server.sock")
const LONGEST_ADDRESS = 103 // bytes that systems allow the path of a socket; behind a longer one events are spooled
const SERVER_MILLISECONDS = 300
const SHOWN_MILLISECONDS = 250 // between two pieces of one text: it streams word by word
const SESSION = /^[A-Za-z0-9][A-Za-z0-9._-]{0,150}$/

async function post(at, body) {
  const { uid } = await lstat(SOCKET)
  if (uid !== process.geteuid() && uid !== 0) throw new Error("another user's")
  if (Buffer.byteLength(SOCKET) > LONGEST_ADDRESS) throw new Error("too long")
  const payload = Buffer.from(body)
  const head = [
    `POST /api/hooks/${AGENT}?at=${at} HTTP/1.1`,
    "Host: localhost",
    "Content-Type: application/json",
    `Content-Length: ${payload.length}`,
    "Connection: close",
  ]
  await new Promise((resolve, reject) => {
    const socket = connect(SOCKET)
    socket.setTimeout(SERVER_MILLISECONDS, () => socket.destroy(new Error("too late")))
    socket.on("error", reject)
    socket.on("close", () => reject(new Error("not taken")))
    socket.on("data", (answer) => {
      if (answer.toString("latin1").startsWith("HTTP/1.1 202 ")) resolve()
      socket.destroy()
    })
    socket.write(`${head.join("\r\n")}\r\n\r\n`)
    socket.write(payload)
  })
}

async function spool(at, session, body) {
  const place = join(FOLDER, "hooks", AGENT)
  await mkdir(place, { recursive: true, mode: 0o700 })
  await appendFile(join(place, `${session}.jsonl`), `{"at":${at},"event":${body}}\n`, { mode: 0o600 })
}

async function send(at, event) {
  const body = JSON.stringify(event)
  await post(at, body).catch(() => spool(at, event.session_id, body))
}

export const Turnlog = async ({ directory }) => {
  let sending = Promise.resolve()
  const pieces = new Map() // part -> what of its text was not told yet, and how many pieces were
  const said = new Set() // parts that the model writes as text

  const tell = (name, session, fields) => {
    if (typeof session !== "string" || !SESSION.test(session)) return
    const at = Date.now()
    const event = { hook_event_name: name, session_id: session, cwd: directory, ...fields }
    sending = sending.then(() => send(at, event)).catch(() => {})
  }

  const flush = (part, final) => {
    const open = pieces.get(part)
    if (!open || (!open.text && !final)) return
    clearTimeout(open.timer)
    open.timer = undefined
    tell("text", open.session, { message_id: part, index: open.index++, delta: open.text, final })
    open.text = ""
    if (final) pieces.delete(part)
  }

  const grow = ({ sessionID, partID, field, delta }) => {
    if (field !== "text" || !said.has(partID)) return
    if (!pieces.has(partID)) pieces.set(partID, { session: sessionID, index: 0, text: "" })
    const open = pieces.get(partID)
    open.text += delta
    open.timer ??= setTimeout(() => flush(partID, false), SHOWN_MILLISECONDS)
  }

  const update = ({ part }) => {
    if (part?.type !== "text" || part.synthetic) return
    if (part.time?.end === undefined) said.add(part.id)
    else if (said.delete(part.id)) flush(part.id, true)
  }

  const onBus = {
    "session.created": ({ info }) => tell("session.created", info.id, { title: info.title }),
    "session.idle": ({ sessionID }) => tell("idle", sessionID, {}),
    "session.error": ({ sessionID, error }) => tell("error", sessionID, { error: error?.data?.message ?? error?.name }),
    "message.part.updated": update,
    "message.part.delta": grow,
    "permission.asked": (asked) =>
      tell("permission", asked.sessionID, {
        tool_name: asked.permission,
        tool_use_id: asked.tool?.callID,
        message: (asked.patterns ?? []).join(" "),
      }),
  }

  const quietly = (handler) => async (...given) => {
    try {
      handler(...given)
    } catch {
      // What cannot be told is in OpenCode's own history.
    }
  }

  return {
    event: quietly(({ event }) => onBus[event.type]?.(event.properties)),
    "chat.message": quietly((input, { message, parts }) =>
      tell("prompt", input.sessionID, {
        prompt_id: message.id,
        prompt: parts
          .filter((part) => part.type === "text" && !part.synthetic)
          .map((part) => part.text)
          .join("\n"),
      }),
    ),
    "tool.execute.before": quietly((input, { args }) =>
      tell("tool.before", input.sessionID, { tool_name: input.tool, tool_use_id: input.callID, tool_input: args }),
    ),
    "tool.execute.after": quietly((input, { output }) =>
      tell("tool.after", input.sessionID, {
        tool_name: input.tool,
        tool_use_id: input.callID,
        tool_input: input.args,
        tool_response: output,
      }),
    ),
  }
}
