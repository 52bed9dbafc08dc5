/** The thread of `server-rows.ts`. A connection for each question: one that stays would keep a database from being removed. */
import { parentPort } from 'node:worker_threads'
import pg from 'pg'

/** Of pg_type: integers and sums of them. */
const [int8, numeric] = [20, 1700]
for (const type of [int8, numeric]) pg.types.setTypeParser(type, Number)

parentPort.on('message', (question) => void answer(question))

async function answer({ signal, port, ...question }) {
  port.postMessage(await answerTo(question))
  Atomics.store(signal, 0, 1)
  Atomics.notify(signal, 0)
}

async function answerTo({ url, text, values }) {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 5_000 })
  client.on('error', () => undefined)
  try {
    await client.connect()
    return { rows: (await client.query(text, values)).rows }
  } catch (error) {
    return { error: String(error) }
  } finally {
    await client.end().catch(() => undefined)
  }
}
