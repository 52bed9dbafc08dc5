/** Relays of media that speak rtpengine's ng protocol, as the rest of `engine/media` sees them. */

export type NgValue = string | number | readonly NgValue[] | NgDictionary
/** Strings are UTF-8 text. */
export interface NgDictionary {
  readonly [key: string]: NgValue
}

export type NgRequest = NgDictionary & { readonly command: string }

export type NgAnswer =
  | { readonly kind: 'ok'; readonly values: NgDictionary }
  | { readonly kind: 'error'; readonly reason: string }
  | { readonly kind: 'timeout' }

export interface Relay {
  /** `host:port`. */
  readonly name: string
  readonly isAlive: boolean
  /** Steady milliseconds of the last answer of any kind. */
  readonly seenAt: number
  /** Steady milliseconds of the last loss or restart. Absent: there was none. */
  readonly lostAt?: number | undefined
  /** `done` is called once, in a later turn or at once. */
  ask(command: NgRequest, done: (answer: NgAnswer) => void): void
  /** Never rejects. */
  request(command: NgRequest): Promise<NgAnswer>
}

export interface Relays {
  /** A relay that is alive, by weight. Undefined: there is none. */
  pick(except?: ReadonlySet<string>): Relay | undefined
  byName(name: string): Relay | undefined
  all(): readonly Relay[]
}
