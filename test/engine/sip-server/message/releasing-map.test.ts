import fc from 'fast-check'
import { expect, it } from 'vitest'
import { ReleasingMap } from '../../../../engine/sip-server/message/releasing-map.ts'

const key = fc.constantFrom('a', 'b', 'c', 'd')
const step = fc.oneof(
  fc.record({ kind: fc.constant('set' as const), key, value: fc.nat() }),
  fc.record({ kind: fc.constant('delete' as const), key }),
  fc.record({ kind: fc.constant('clear' as const) }),
)

it('holds what a Map holds, in the same order, whatever comes and goes', () => {
  fc.assert(
    fc.property(fc.array(step), (steps) => {
      const map = new Map<string, number>()
      const releasing = new ReleasingMap<string, number>()
      for (const each of steps) {
        if (each.kind === 'set') {
          map.set(each.key, each.value)
          releasing.set(each.key, each.value)
        } else if (each.kind === 'delete')
          expect(releasing.delete(each.key)).toBe(map.delete(each.key))
        else {
          map.clear()
          releasing.clear()
        }
        expect([...releasing]).toEqual([...map])
      }
      expect([...releasing.keys()]).toEqual([...map.keys()])
      expect([...releasing.values()]).toEqual([...map.values()])
      expect(releasing.size).toBe(map.size)
      for (const name of ['a', 'b', 'c', 'd']) {
        expect(releasing.get(name)).toBe(map.get(name))
        expect(releasing.has(name)).toBe(map.has(name))
      }
    }),
  )
})
