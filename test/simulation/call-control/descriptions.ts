/**
 * Session descriptions: what a peer says of itself, and whether what it is told makes one history
 * (RFC 3264 §8).
 */
import type { Chance } from './chance.ts'

const directions = ['sendrecv', 'sendrecv', 'sendonly', 'inactive', 'recvonly'] as const

/** The peer's own: its version grows by one whenever it says something else. */
export class OwnDescriptions {
  readonly #name: string
  readonly #chance: Chance
  #version = 0
  #body = ''
  last = ''

  constructor(name: string, chance: Chance) {
    this.#name = name
    this.#chance = chance
  }

  next(changes: number): string {
    if (this.#body === '' || this.#chance.is(changes)) this.#describe()
    return this.last
  }

  #describe(): void {
    const port = 4_000 + 2 * this.#chance.between(0, 4)
    const direction = this.#body === '' ? 'sendrecv' : this.#chance.pick(directions)
    const body = `s=-\r\nc=IN IP4 10.1.1.1\r\nt=0 0\r\nm=audio ${port} RTP/AVP 8\r\na=${direction}\r\na=label:${this.#name}\r\n`
    if (body === this.#body) return
    this.#body = body
    this.#version += 1
    this.last = `v=0\r\no=${this.#name} 7 ${this.#version} IN IP4 10.1.1.1\r\n${body}`
  }
}

/**
 * Who describes itself there, by the label of the stream (RFC 4574); undefined: Tollgate, so that
 * no media flows.
 */
export const describedIn = (sdp: string): string | undefined => /^a=label:(\S+)/m.exec(sdp)?.[1]

const origin = /^o=(\S+ \S+) (\d+) ([^\r\n]*)/m

/** The descriptions that one peer has been told in one dialog. */
export class ToldDescriptions {
  #last: string | undefined

  /**
   * Returns what is wrong. `isOwn`: Tollgate makes the versions, which then grow by exactly one;
   * else they are the other peer's, some of whose descriptions never came as far as here.
   */
  complaint(sdp: string, isOwn: boolean): string | undefined {
    const before = this.#last
    this.#last = sdp
    if (before === undefined || before === '') return undefined
    const [last, next] = [origin.exec(before), origin.exec(sdp)]
    if (!last || !next) return next ? undefined : 'a description without o= line'
    if (last[1] !== next[1] || last[3] !== next[3]) return `another origin: ${last[0]}, ${next[0]}`
    const isSame = before.replace(origin, '') === sdp.replace(origin, '')
    const step = Number(next[2]) - Number(last[2])
    const least = isSame ? 0 : 1
    if (step === least || (step > least && !isOwn)) return undefined
    return `${isSame ? 'the same' : 'another'} description: ${last[0]}, then ${next[0]}`
  }
}
