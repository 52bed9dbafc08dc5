/**
 * HTTP/1.1 as bytes on one connection: what a client library would not let a test or a bench send.
 */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'

export interface RawAnswer {
  readonly status: number
  /** Names in small letters. */
  readonly headers: ReadonlyMap<string, string>
  readonly body: string
}

export interface Connection {
  readonly socket: Socket
  /** Resolves when the other end has closed. */
  readonly closed: Promise<void>
  /** Writes bytes; answers come in the order of requests. */
  write(text: string | Buffer): void
  /** The next answer; rejects when the connection closes without one. */
  answer(): Promise<RawAnswer>
}

interface Waiting {
  readonly resolve: (answer: RawAnswer) => void
  readonly reject: (error: Error) => void
}

export async function openConnection(port: number): Promise<Connection> {
  const socket = connect({ host: '127.0.0.1', port, noDelay: true })
  await once(socket, 'connect')
  const waiting: Waiting[] = []
  const answers: RawAnswer[] = []
  let text = ''
  socket.on('data', (chunk: Buffer) => {
    text += chunk.toString('latin1')
    for (let end = endOfAnswer(text); end !== -1; end = endOfAnswer(text)) {
      const answer = parseAnswer(text.slice(0, end))
      text = text.slice(end)
      const next = waiting.shift()
      if (next === undefined) answers.push(answer)
      else next.resolve(answer)
    }
  })
  socket.on('error', () => undefined)
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()))
  void closed.then(() => waiting.forEach(({ reject }) => reject(new Error('closed'))))
  return {
    socket,
    closed,
    write: (bytes) => void socket.write(bytes),
    answer() {
      const ready = answers.shift()
      if (ready !== undefined) return Promise.resolve(ready)
      return new Promise((resolve, reject) => waiting.push({ resolve, reject }))
    },
  }
}

/** A request without a body, ready to be written many times. */
export const requestText = (method: string, path: string, token?: string): string =>
  [
    `${method} ${path} HTTP/1.1`,
    'Host: localhost',
    ...(token === undefined ? [] : [`Authorization: Bearer ${token}`]),
    '',
    '',
  ].join('\r\n')

function endOfAnswer(text: string): number {
  const end = text.indexOf('\r\n\r\n')
  if (end === -1) return -1
  const length = /content-length: (\d+)/i.exec(text.slice(0, end))?.[1] ?? '0'
  const whole = end + 4 + Number(length)
  return text.length >= whole ? whole : -1
}

function parseAnswer(text: string): RawAnswer {
  const end = text.indexOf('\r\n\r\n')
  const [statusLine = '', ...lines] = text.slice(0, end).split('\r\n')
  const headers = lines.map((line): [string, string] => {
    const colon = line.indexOf(':')
    return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()]
  })
  return {
    status: Number(statusLine.split(' ')[1]),
    headers: new Map(headers),
    body: text.slice(end + 4),
  }
}
