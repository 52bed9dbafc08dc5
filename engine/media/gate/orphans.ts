/** Sessions that a crash has left at the relays. */
import { deleteOf } from './ng-requests.ts'
import type { NgAnswer, Relay } from '../relay/relays.ts'
import type { Sessions } from './sessions.ts'

/** Their names fit into one datagram; what is left over ends by the relay's own timeout. */
const LIST_LIMIT = 800
/** A relay that does not answer now may do so later. */
const TRIES = 12
const RETRY_MS = 5_000

export function deleteOrphans(
  relays: readonly Relay[],
  sessions: Sessions,
  after: (act: () => void, delayMs: number) => unknown,
): void {
  for (const relay of relays) void look(relay, TRIES)

  async function look(relay: Relay, tries: number): Promise<void> {
    const answer = await relay.request({ command: 'list', limit: LIST_LIMIT })
    if (answer.kind === 'ok') {
      for (const id of namesIn(answer).filter((name) => sessions.isOrphan(name)))
        void relay.request(deleteOf(id))
    } else if (tries > 1) after(() => void look(relay, tries - 1), RETRY_MS)
  }
}

function namesIn(answer: NgAnswer): readonly string[] {
  const calls = answer.kind === 'ok' ? answer.values['calls'] : undefined
  return Array.isArray(calls) ? calls.filter((name) => typeof name === 'string') : []
}
