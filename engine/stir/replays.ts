/** PASSporTs of calls: the same one in another call is a replay (RFC 8224 §12.1). */
import { hash } from 'node:crypto'
import { recentlyUsed } from '../../schema/recently-used.ts'

/** Those of 300 calls/s in 100 s. Only PASSporTs whose signature holds are kept. */
const MAX_KEPT = 32_768
const MAX_CALL_ID_LENGTH = 256

export class Replays {
  readonly #calls = recentlyUsed<string, string>(MAX_KEPT)

  get size(): number {
    return this.#calls.size
  }

  /** Whether another call has come with it. A failover of the same call has its Call-ID. */
  isReplay(signed: string, callId: string): boolean {
    // The signature does not tell them apart: that of ECDSA has a twin that holds as well.
    const key = hash('sha256', signed, 'base64')
    const id = callId.slice(0, MAX_CALL_ID_LENGTH)
    const known = this.#calls.get(key)
    if (known === undefined) this.#calls.set(key, id)
    return known !== undefined && known !== id
  }
}
