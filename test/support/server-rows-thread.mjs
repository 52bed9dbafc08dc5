/**
 * The thread of `server-rows.ts`. A connection stays for the next question: to open one costs the
 * server a process.
 */
import { parentPort } from 'node:worker_threads'
import pg from 'pg'

/** A test has two databases at most. */
const MAX_CLIENTS = 2

/** Types of pg_type: integers and sums of them. */
const [int8, numeric] = [20, 1700]
for (const type of [int8, numeric]) pg.types.setTypeParser(type, Number)

parentPort.on('message', (question) => void answer(question))

async function answer({ signal, port, ...question }) {
  port.postMessage(await answerTo(question))
  Atomics.store(signal, 0, 1)
  Atomics.notify(signal, 0)
}

async function answerTo({ url, text, values }) {
  const isOpen = clients.has(url)
  try {
    const client = clients.get(url) ?? (await open(url))
    return { rows: (await client.query(text, values)).rows }
  } catch (error) {
    close(url)
    // The server may have been stopped, or the database been made anew, since the last question.
    return isOpen ? answerTo({ url, text, values }) : { error: String(error) }
  }
}

/** The clients by URL. */
const clients = new Map()

async function open(url) {
  const [oldest] = clients.keys()
  if (clients.size === MAX_CLIENTS) close(oldest)
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 5_000 })
  client.on('error', () => close(url))
  clients.set(url, client)
  await client.connect()
  return client
}

function close(url) {
  const client = clients.get(url)
  clients.delete(url)
  client?.end().catch(() => undefined)
}
