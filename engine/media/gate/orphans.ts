/** Sessions that a crash has left at the relays. */
import { deleteOf } from './ng-requests.ts'
import type { NgAnswer, Relay } from '../relay/relays.ts'
import type { Sessions } from './sessions.ts'

/** Their names fit into one datagram. rtpengine lists the first ones in an order of its own: what is deleted makes room. */
const PAGE = 800
/** One after the other, while there is something to delete. */
const MAX_PAGES = 200
/** A relay may not answer now, or list sessions that go on alone: over two hours. */
const TRIES = 20
const RETRY_MS = { first: 5_000, most: 600_000 } as const

export function deleteOrphans(
  relays: readonly Relay[],
  sessions: Pick<Sessions, 'isOrphan'>,
  after: (act: () => void, delayMs: number) => unknown,
): void {
  for (const relay of relays) void look(relay, 0)

  async function look(relay: Relay, tries: number): Promise<void> {
    for (let page = 0; page < MAX_PAGES; page += 1) {
      const names = namesIn(await relay.request({ command: 'list', limit: PAGE }))
      const orphans = names?.filter((name) => sessions.isOrphan(name)) ?? []
      const answers = await Promise.all(orphans.map((id) => relay.request(deleteOf(id))))
      const isDone = answers.every(({ kind }) => kind !== 'timeout')
      if (names !== undefined && names.length < PAGE && isDone) return
      if (orphans.length === 0 || !isDone) break
    }
    const delayMs = Math.min(RETRY_MS.first * 2 ** tries, RETRY_MS.most)
    if (tries + 1 < TRIES) after(() => void look(relay, tries + 1), delayMs)
  }
}

/** Undefined: the relay has not told them. */
function namesIn(answer: NgAnswer): readonly string[] | undefined {
  if (answer.kind !== 'ok') return undefined
  const { calls } = answer.values
  return Array.isArray(calls) ? calls.filter((name) => typeof name === 'string') : []
}
