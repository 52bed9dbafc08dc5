/**
 * Unique names for dialogs, transactions and requests of this server, unguessable where a peer must
 * not guess them.
 */

export class Identifiers {
  /** An unguessable token of letters and digits: tags and Call-IDs. */
  readonly token: () => string
  /**
   * Distinguishes the ids of this process from those of one before it, which an application may
   * still quote.
   */
  readonly #run: string
  #last = 0

  constructor(token: () => string) {
    this.token = token
    this.#run = token().slice(0, 6)
  }

  /** Unique in this process. */
  next(): string {
    this.#last += 1
    return this.#last.toString(36)
  }

  /** Short enough for V8 to keep it in one piece. Only the application that got it may quote it. */
  transactionId(): string {
    return `${this.#run}-${this.next()}`
  }

  branch(): string {
    return `z9hG4bK${this.token()}`
  }

  /** A random number of 32 bits. */
  number(): number {
    return hashOf(this.token())
  }
}

/**
 * FNV-1a, 32 bits: equal for equal texts, evenly spread for others; no secret is safe behind it.
 */
export function hashOf(text: string): number {
  let hash = 0x811c9dc5
  for (let i = 0; i < text.length; i++)
    hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193) >>> 0
  return hash
}
