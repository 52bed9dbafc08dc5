/** The kept events of all nodes as one list. */
import type { EventsPort } from '../../../schema/contracts/engine-events.ts'
import { bodyOf } from '../../nodes/node-client.ts'
import type { AskedNodes } from '../../nodes/other-nodes.ts'
import type { PriceSource } from '../../calls/active-call-view.ts'
import { ONLY_NODE, parsePosition, positionText } from './event-position.ts'
import { ownPosition } from './missed-events.ts'
import { type LogPart, logPart, partOf } from './shared-event.ts'

/** Maximum length of the list; the newest events. */
export const LISTED = 1_000

/** Behind `after`; of nodes that it does not name, all that is kept. Oldest first by the clocks of the nodes. */
export async function listOfAll(
  asked: AskedNodes,
  after: string | undefined,
  tenantId: number | null,
  { events, ocs }: { readonly events: EventsPort; readonly ocs: PriceSource | undefined },
) {
  const position = after === undefined ? new Map<string, string>() : parsePosition(after)
  const answers = await asked.question((peer) => {
    const known = position.get(peer.name)
    return { kind: 'events', tenantId, ...(known !== undefined && { after: known }) }
  })
  const own = partOf(events, { after: ownPosition(position, asked.self), tenantId }, ocs)
  const parts: (readonly [string, LogPart])[] = [[asked.self, own]]
  for (const answer of answers) {
    const part = bodyOf(answer, logPart)
    if (part !== undefined) parts.push([answer.peer.name, part])
  }
  const found = parts.flatMap(([name, part]) => part.events.map((event) => ({ name, ...event })))
  const idOf = new Map(parts.map(([name, { epoch }]) => [name, (n: number) => `${epoch}-${n}`]))
  const reached = new Map<string, string>()
  for (const [name, { events: kept, last, epoch }] of parts)
    reached.set(name, `${epoch}-${(kept[0]?.sequence ?? last + 1) - 1}`)
  const listed = found
    .toSorted((a, b) => a.at - b.at)
    .map(({ name, sequence, type, data }) => {
      reached.set(name, idOf.get(name)?.(sequence) ?? '')
      return { id: positionText(reached), type, data }
    })
    .slice(-LISTED)
  for (const [name, { last }] of parts) reached.set(name, idOf.get(name)?.(last) ?? '')
  // Of a node that did not answer, the reader is where it was.
  const unheard = [...position].filter(([name]) => name !== ONLY_NODE && !reached.has(name))
  return { events: listed, last_event_id: positionText(new Map([...unheard, ...reached])) }
}
