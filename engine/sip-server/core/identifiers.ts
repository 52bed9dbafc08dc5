/** Names for what this server makes: unique, and unguessable where a peer must not guess them. */

export class Identifiers {
  /** An unguessable token of letters and digits: tags and Call-IDs. */
  readonly token: () => string
  #last = 0

  constructor(token: () => string) {
    this.token = token
  }

  /** Unique in this process. */
  next(): string {
    this.#last += 1
    return this.#last.toString(36)
  }

  transactionId(): string {
    return `${this.token()}-${this.next()}`
  }

  branch(): string {
    return `z9hG4bK${this.token()}`
  }

  /** A random number of 32 bits. */
  number(): number {
    return hashOf(this.token())
  }
}

/** FNV-1a, 32 bits: equal for equal texts, evenly spread for others; no secret is safe behind it. */
export function hashOf(text: string): number {
  let hash = 0x811c9dc5
  for (let i = 0; i < text.length; i++)
    hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193) >>> 0
  return hash
}
