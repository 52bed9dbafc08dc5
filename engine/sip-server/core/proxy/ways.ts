/** Where a forwarded request can be sent: registered connection, address, or what DNS says of a name. */
import type { Flow } from '../../flow.ts'
import { wayTo } from '../compose.ts'
import type { Stack } from '../stack.ts'
import { lookUp } from '../uac/ways.ts'
import type { Target } from './target.ts'

/** `found` is called once, now or later; without flows there is no way. The preferred one is first. */
export function findWays(
  stack: Stack,
  target: Pick<Target, 'hop' | 'way'>,
  now: number,
  found: (flows: readonly Flow[], now: number) => void,
): void {
  const known = target.way ?? stack.registrationFlows.find(target.hop)
  if (known) return found([known], now)
  const way = wayTo(stack, target.hop)
  if ('problem' in way) return found([], now)
  if (way.question === undefined) return found([way.flow], now)
  lookUp(stack, way.question, found)
}
