/** How much of a share is used in a second. */

/** The part of the rate of the second before that counts when less was used. */
const FADE = 0.8

export class UseRate {
  /** The use that began in this second. */
  #started = 0
  #perSecond = 0

  add(amount: number): void {
    this.#started += amount
  }

  /** A second has passed. */
  tick(): void {
    this.#perSecond = Math.max(this.#started, this.#perSecond * FADE)
    if (this.#perSecond < 0.5) this.#perSecond = 0
    this.#started = 0
  }

  get isZero(): boolean {
    return this.#perSecond === 0
  }

  /** Returns how much the next seconds use. `isBursty`: the second that has begun counts, too. */
  ahead(seconds: number, isBursty: boolean): number {
    const started = isBursty ? this.#started : 0
    return Math.ceil(Math.max(started, this.#perSecond) * seconds)
  }
}
