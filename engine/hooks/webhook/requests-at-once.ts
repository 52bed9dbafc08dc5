/** Requests of routing webhooks that wait for an answer, bounded for each webhook and owner. */
import { MAX_CONNECTIONS } from './webhook-client.ts'

const MAX_OF_OWNER = 400
const MAX_OF_ALL = 2_000

export class RequestsAtOnce {
  readonly #ofWebhooks = new Map<number, number>()
  readonly #ofOwners = new Map<number | null, number>()
  #all = 0

  /** Returns what ends the request; undefined: there are too many now. */
  begin(webhookId: number, owner: number | null): (() => void) | undefined {
    const ofWebhook = this.#ofWebhooks.get(webhookId) ?? 0
    const ofOwner = this.#ofOwners.get(owner) ?? 0
    if (ofWebhook >= MAX_CONNECTIONS || ofOwner >= MAX_OF_OWNER || this.#all >= MAX_OF_ALL)
      return undefined
    this.#ofWebhooks.set(webhookId, ofWebhook + 1)
    this.#ofOwners.set(owner, ofOwner + 1)
    this.#all += 1
    return () => {
      lessen(this.#ofWebhooks, webhookId)
      lessen(this.#ofOwners, owner)
      this.#all -= 1
    }
  }
}

function lessen<Key>(counts: Map<Key, number>, key: Key): void {
  const left = (counts.get(key) ?? 0) - 1
  if (left > 0) counts.set(key, left)
  else counts.delete(key)
}
