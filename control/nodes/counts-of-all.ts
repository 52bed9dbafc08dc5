/** Adds the live calls that other nodes have to those of this one. */
import type { Context } from 'hono'
import type { ControlEnv } from '../http/control-env.ts'
import { bodyOf } from './answer-data.ts'
import type { AskedNodes, OtherNodes } from './other-nodes.ts'
import { countsAnswer } from './questions.ts'

/** What has live calls: nodes of dispatcher sets, carriers, AI agents. */
type Kind = 'nodes' | 'carriers' | 'agents'

/** How many live calls other nodes have for these ids; undefined: there is no other node to ask. */
export function countsElsewhere(
  c: Context<ControlEnv>,
  others: OtherNodes | undefined,
  kind: Kind,
  ids: readonly number[],
): Promise<((id: number) => number) | undefined> {
  return countsOfAsked(others?.of(c), kind, ids)
}

/** The same for nodes that the request may ask. */
export async function countsOfAsked(
  asked: AskedNodes | undefined,
  kind: Kind,
  ids: readonly number[],
): Promise<((id: number) => number) | undefined> {
  if (asked === undefined) return undefined
  const answers = await asked.question({ kind: 'counts', of: kind, ids: [...ids] })
  const counts = answers.map((answer) => bodyOf(answer, countsAnswer) ?? {})
  return (id) => counts.reduce((sum, count) => sum + (count[id] ?? 0), 0)
}
