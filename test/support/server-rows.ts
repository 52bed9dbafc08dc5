/**
 * Rows of a PostgreSQL database at once, as better-sqlite3 reads those of a file: a thread asks the
 * server while this one waits.
 */
import { type MessagePort, MessageChannel, receiveMessageOnPort, Worker } from 'node:worker_threads'
import { patienceMs } from './waiting.ts'

interface Answer {
  readonly rows?: unknown[]
  readonly error?: string
}

/** @throws {Error} what the server says. */
export function serverRows<Row>(url: string, sql: string, values: readonly unknown[]): Row[] {
  const { port1: here, port2: there } = new MessageChannel()
  const signal = new Int32Array(new SharedArrayBuffer(4))
  let place = 0
  const text = sql.replaceAll('?', () => `$${(place += 1)}`)
  reader().postMessage({ url, text, values, signal, port: there }, [there])
  Atomics.wait(signal, 0, 0, patienceMs)
  const { rows, error = 'the server does not answer' } = answerIn(here)
  here.close()
  if (rows === undefined) throw new Error(`${sql}: ${error}`)
  // The statement's columns are the caller's: it wrote the SQL.
  return rows as Row[]
}

const answerIn = (port: MessagePort): Answer =>
  (receiveMessageOnPort(port)?.message as Answer | undefined) ?? {}

let thread: Worker | undefined

function reader(): Worker {
  thread ??= new Worker(new URL('server-rows-thread.mjs', import.meta.url))
  thread.unref()
  return thread
}
