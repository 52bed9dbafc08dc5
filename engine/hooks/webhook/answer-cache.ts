/** Answers of one webhook that hold for a while, by parts of the calls that they were for. */
import { LRUCache } from 'lru-cache'
import type { HookCall, InviteDecision } from '../../../schema/contracts/hooks.ts'
import type { CacheKeyPart } from '../../../schema/contracts/routing-webhooks.ts'

/** Null: nothing is decided. */
export type KeptAnswer = InviteDecision | null

interface Kept {
  readonly answer: KeptAnswer
  readonly expiresAt: number
}

const MAX_ANSWERS = 10_000
const MAX_BYTES = 1_048_576
/** About what an entry takes beside its texts. */
const ENTRY_BYTES = 200

export class AnswerCache {
  readonly #kept = new LRUCache<string, Kept>({ max: MAX_ANSWERS, maxSize: MAX_BYTES })
  readonly #keepMs: number

  constructor(keepSeconds: number) {
    this.#keepMs = keepSeconds * 1_000
  }

  /** Undefined: there is none that holds at `now`. */
  get(key: string, now: number): KeptAnswer | undefined {
    const kept = this.#kept.get(key)
    if (kept === undefined) return undefined
    if (now < kept.expiresAt) return kept.answer
    this.#kept.delete(key)
    return undefined
  }

  /** @param bytes of the answer as it came. */
  keep(key: string, answer: KeptAnswer, bytes: number, now: number): void {
    const size = ENTRY_BYTES + key.length * 2 + bytes * 2
    this.#kept.set(key, { answer, expiresAt: now + this.#keepMs }, { size })
  }
}

/**
 * The key of a call. The tenant and the called domain are always part of it: the same numbers may
 * be of other people there. So is what is proved of the caller: an answer for a call that is signed
 * is none for one that only says so.
 */
export function cacheKeyOf(parts: readonly CacheKeyPart[], call: HookCall): string {
  const { tenantId, domain, verification, attestation } = call
  const proved = verification === undefined ? [] : [verification, attestation ?? null]
  return JSON.stringify([tenantId, domain, ...parts.map((part) => partOf(part, call)), ...proved])
}

function partOf(part: CacheKeyPart, { source, ...call }: HookCall): unknown {
  switch (part) {
    case 'from':
      return call.from
    case 'to':
      return call.to
    case 'source':
      return [source.kind, source.id, source.address]
    case 'carrier':
      return call.carrier?.id ?? null
    case 'customer':
      return call.customer?.id ?? null
  }
}
