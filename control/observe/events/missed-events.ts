/** What a reader that comes back has missed of the other nodes. */
import type { EngineEvent } from '../../../schema/contracts/engine-events.ts'
import type { PriceSource } from '../../calls/active-call-view.ts'
import { ONLY_NODE, parsePosition, type Position } from './event-position.ts'
import type { PeerEvents } from './peer-events.ts'
import type { PeerLog } from './peer-log.ts'
import { type LogPart, shared, type SharedEvent } from './shared-event.ts'

export interface Missed {
  readonly position: Position
  /** Every node of the position could be asked. */
  readonly isComplete: boolean
  /** What the reader lacks of a log, up to what other readers have been sent. Call it when nothing waits any more. */
  of(node: string, log: PeerLog): { readonly events: readonly SharedEvent[]; isComplete: boolean }
}

/** The id of this node's log in a position, which may be of a time when it was alone. */
export const ownPosition = (position: Position, self: string): string | undefined =>
  position.get(self) ?? position.get(ONLY_NODE)

export const asEvents = (
  events: readonly EngineEvent[],
  ocs: PriceSource | undefined,
): SharedEvent[] => events.map((event) => shared(event, ocs))

export async function missedOf(
  peers: PeerEvents,
  lastId: string,
  tenantId: number | null,
): Promise<Missed> {
  const position = parsePosition(lastId)
  const parts = new Map<string, LogPart>()
  // Of what is older than the log here, the node is asked.
  const older = [...peers.logs()].filter(([name, log]) => isOlder(position.get(name), log))
  if (older.length > 0)
    for (const [name, part] of await peers.parts(position, tenantId)) parts.set(name, part)
  const known = new Set([...peers.logs()].map(([name]) => name))
  const isComplete = [...position.keys()].every(
    (name) => name === ONLY_NODE || name === peers.self || known.has(name),
  )
  const own = ownPosition(position, peers.self)
  const byNode = new Map([...position].filter(([name]) => name !== ONLY_NODE))
  if (own !== undefined) byNode.set(peers.self, own)
  return {
    position: byNode,
    isComplete,
    of: (name, log) => missing(position.get(name), log, parts.get(name)),
  }
}

function missing(
  id: string | undefined,
  log: PeerLog,
  part: LogPart | undefined,
): ReturnType<Missed['of']> {
  const upToNow = (event: SharedEvent): boolean => event.sequence <= log.seen
  const sequence = sequenceIn(id, log)
  if (sequence !== undefined && sequence >= log.first - 1)
    return { events: log.after(sequence).filter(upToNow), isComplete: true }
  if (part === undefined || part.epoch !== log.epoch)
    return { events: id === undefined ? [] : log.after(0).filter(upToNow), isComplete: false }
  const joined = [...part.events, ...log.after(part.last)].filter(upToNow)
  const isJoined = part.last >= log.first - 1
  return {
    events: id === undefined ? [] : joined,
    isComplete: isJoined && part.isComplete,
  }
}

const isOlder = (id: string | undefined, log: PeerLog): boolean => {
  const sequence = sequenceIn(id, log)
  return id !== undefined && (sequence === undefined || sequence < log.first - 1)
}

/** Undefined: another numbering, of an earlier run of the node. */
function sequenceIn(id: string | undefined, { epoch, last }: PeerLog): number | undefined {
  const [start, text = ''] = (id ?? '').split('-')
  return start === epoch && Number(text) <= last ? Number(text) : undefined
}
