/**
 * Readers of `GET /api/v1/events` while calls come and go: the server's own CPU time, because bench
 * and server share the machine. Arguments: readers, calls per second, seconds, tenants.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createConnection, type Socket } from 'node:net'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'

export const describe = 'CPU of 1,000 readers of the event stream at 200 calls/s (four events each)'

export async function run(words: readonly string[]): Promise<void> {
  const [readers = 1_000, callsPerSecond = 200, seconds = 10, tenants = 20] = words.map(Number)
  for (const parts of [tenants, 1]) await measure(readers, callsPerSecond, seconds, parts)
}

/** `tenants` 1: every reader hears of every call. */
async function measure(
  readers: number,
  callsPerSecond: number,
  seconds: number,
  tenants: number,
): Promise<void> {
  const script = new URL('../support/bench/event-server.ts', import.meta.url).pathname
  const child = spawn(
    process.execPath,
    ['--import', 'tsx', script, String(tenants), String(callsPerSecond)],
    { stdio: ['pipe', 'pipe', 'inherit'] },
  )
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  const ask = async (command?: string): Promise<string> => {
    if (command !== undefined) child.stdin.write(`${command}\n`)
    const line = await lines.next()
    if (line.done === true) throw new Error('the server ended early')
    return line.value
  }
  const { port, tokens } = JSON.parse(await ask()) as { port: number; tokens: string[] }
  let bytes = 0
  const sockets = await Promise.all(
    Array.from({ length: readers }, (_, index) =>
      openReader(port, tokens[index % tokens.length] ?? '', (length) => {
        bytes += length
      }),
    ),
  )
  const idle = await cpuShare(ask, 2)
  await ask('start')
  await sleep(2_000)
  const before = bytes
  const share = await cpuShare(ask, seconds)
  const perReader = (bytes - before) / seconds / readers
  const left = sockets.filter((socket) => !socket.destroyed).length
  console.log(
    `  ${readers} readers of ${tenants} tenants: ${percent(share)} of a core ` +
      `(idle ${percent(idle)}), ${Math.round(perReader)} B/s each, ${left} still there`,
  )
  for (const socket of sockets) socket.destroy()
  child.stdin.end()
  await once(child, 'exit')
}

async function cpuShare(ask: (command: string) => Promise<string>, seconds: number) {
  const before = Number(await ask('cpu'))
  const startedAt = performance.now()
  await sleep(seconds * 1_000)
  const used = Number(await ask('cpu')) - before
  return used / 1_000 / (performance.now() - startedAt)
}

const percent = (share: number): string => `${(share * 100).toFixed(1)} %`

function openReader(
  port: number,
  token: string,
  onBytes: (length: number) => void,
): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = createConnection(port, '127.0.0.1')
    socket.on('error', reject)
    socket.on('data', (chunk) => {
      onBytes(chunk.length)
      resolve(socket)
    })
    socket.write(
      `GET /api/v1/events HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\nAuthorization: Bearer ${token}\r\n\r\n`,
    )
  })
}
