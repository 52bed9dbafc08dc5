/** A DNS server on loopback with the records that a test gives it. */
import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { decode, encode, type Answer } from 'dns-packet'

export class DnsServer {
  /** `address:port`. */
  readonly address: string
  /** Names that were asked for, as `SRV _sip._udp.example.com`. */
  readonly asked: string[] = []
  readonly #socket: Socket
  #records: readonly Answer[] = []
  #isSilent = false

  private constructor(socket: Socket) {
    this.#socket = socket
    this.address = `127.0.0.1:${socket.address().port}`
    socket.on('message', (bytes, { port, address }) => {
      const answer = this.#answer(bytes)
      if (answer) socket.send(answer, port, address)
    })
  }

  static async start(): Promise<DnsServer> {
    const socket = createSocket('udp4')
    socket.bind(0, '127.0.0.1')
    await once(socket, 'listening')
    return new DnsServer(socket)
  }

  /** Everything that it knows from now on. */
  serve(...records: readonly Answer[]): void {
    this.#records = records
  }

  /** Answers nothing from now on. */
  fallSilent(): void {
    this.#isSilent = true
  }

  close(): void {
    this.#socket.close()
  }

  #answer(bytes: Buffer): Buffer | undefined {
    const { id, questions = [] } = decode(bytes)
    for (const { type, name } of questions) this.asked.push(`${type} ${name}`)
    if (this.#isSilent) return undefined
    const answers = this.#records.filter((record) =>
      questions.some(
        ({ type, name }) =>
          record.type === type && record.name.toLowerCase() === name.toLowerCase(),
      ),
    )
    const isKnown = this.#records.some(({ name }) => questions.some((asked) => asked.name === name))
    // AA and RD; 3: NXDOMAIN.
    const flags = 0x0580 | (isKnown ? 0 : 3)
    return encode({
      type: 'response',
      ...(id === undefined ? {} : { id }),
      flags,
      questions,
      answers,
    })
  }
}
