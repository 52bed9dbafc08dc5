/**
 * HTTP clients that cost next to nothing: prepared bytes go out, and of an answer only its status
 * and its end are looked at. So the server is measured, and not the client.
 */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { requestText } from '../../support/http-connection.ts'

const success = Buffer.from('HTTP/1.1 200 ')
/** The envelope ends so, and no part of a head does. */
const endOfAnswer = Buffer.from('}}')

export class HttpLoad {
  readonly #sockets = new Map<Socket, Buffer>()

  /** `GET path` with these tokens, a connection for each. */
  static async open(port: number, path: string, tokens: readonly string[]): Promise<HttpLoad> {
    const load = new HttpLoad()
    for (const token of tokens) {
      const socket = connect({ host: '127.0.0.1', port, noDelay: true })
      await once(socket, 'connect')
      load.#sockets.set(socket, Buffer.from(requestText('GET', path, token)))
    }
    return load
  }

  close(): void {
    for (const socket of this.#sockets.keys()) socket.destroy()
  }

  /** Every connection asks again as soon as it is answered. Milliseconds of each answer. */
  async saturate(forMs: number): Promise<readonly number[]> {
    const until = performance.now() + forMs
    const times: number[] = []
    const client = async (socket: Socket, request: Buffer): Promise<void> => {
      while (performance.now() < until) {
        const asked = performance.now()
        socket.write(request)
        await answer(socket)
        times.push(performance.now() - asked)
      }
    }
    await Promise.all([...this.#sockets].map(([socket, request]) => client(socket, request)))
    return times
  }
}

async function answer(socket: Socket): Promise<void> {
  let [chunk] = (await once(socket, 'data')) as [Buffer]
  if (chunk.compare(success, 0, success.length, 0, success.length) !== 0)
    throw new Error(`the server answered ${chunk.toString()}`)
  while (chunk.compare(endOfAnswer, 0, 2, chunk.length - 2) !== 0)
    [chunk] = (await once(socket, 'data')) as [Buffer]
}
