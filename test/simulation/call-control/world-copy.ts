/**
 * A world as it would be read back from where it was written: nothing that is not plain text
 * survives.
 */
import { ReleasingMap } from '../../../schema/sip/index.ts'
import type { World } from '../../../engine/call/call-machine/state.ts'

type Tables = {
  readonly [name in 'calls' | 'legs' | 'exchanges' | 'transfers']: Readonly<
    Record<string, World[name] extends ReleasingMap<string, infer Value> ? Value : never>
  >
}

export const written = ({
  instance,
  calls,
  legs,
  exchanges,
  transfers,
  transferCount,
}: World): string =>
  JSON.stringify({
    instance,
    calls: Object.fromEntries(calls),
    legs: Object.fromEntries(legs),
    exchanges: Object.fromEntries(exchanges),
    transfers: Object.fromEntries(transfers),
    transferCount,
  })

export function readBack(text: string): World {
  const read: Tables & Pick<World, 'instance' | 'transferCount'> = JSON.parse(text)
  const { instance, calls, legs, exchanges, transfers, transferCount } = read
  return {
    instance,
    calls: mapOf(calls),
    legs: mapOf(legs),
    exchanges: mapOf(exchanges),
    transfers: mapOf(transfers),
    transferCount,
  }
}

function mapOf<T>(values: Readonly<Record<string, T>>): ReleasingMap<string, T> {
  const map = new ReleasingMap<string, T>()
  for (const [key, value] of Object.entries(values)) map.set(key, value)
  return map
}
