/**
 * Whether this instance owns what it holds. Others may take it while this instance does not show
 * that it lives; then it is fenced, and asks for everything anew before it uses any of it.
 */

export interface TenureProof {
  /** False: others may take the instance for gone, and what it holds. */
  readonly canHold: () => boolean
  /**
   * Changes when others have taken what was held, and this process may hold again. Absent: it does
   * not.
   */
  readonly run?: () => number
}

export class Tenure {
  readonly #proof: TenureProof
  readonly #onFenced: () => void
  #isLost = false
  #run: number | undefined

  /** @param onFenced others may have taken what was held, and this instance may hold again. */
  constructor(proof: TenureProof, onFenced: () => void) {
    this.#proof = proof
    this.#onFenced = onFenced
    this.#run = proof.run?.()
  }

  /** Looks now, and calls `onFenced` before it returns true for the first time again. */
  isHeld(): boolean {
    const { canHold, run } = this.#proof
    const isHeld = canHold()
    if (isHeld && (this.#isLost || this.#run !== run?.())) {
      this.#isLost = false
      this.#run = run?.()
      this.#onFenced()
    }
    if (!isHeld) this.#isLost = true
    return isHeld
  }
}
