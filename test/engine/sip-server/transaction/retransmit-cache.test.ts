import fc from 'fast-check'
import { expect, test } from 'vitest'
import { Deadlines } from '../../../../engine/sip-server/transaction/machine.ts'
import { RetransmitCache } from '../../../../engine/sip-server/transaction/server.ts'

const lifetimeMs = 32_000

function tableOf(seed = 7): { deadlines: Deadlines; kept: RetransmitCache } {
  const deadlines = new Deadlines()
  return { deadlines, kept: new RetransmitCache(deadlines, lifetimeMs, seed) }
}

// A body may hold any bytes, which `message/decode.ts` turns into lone surrogates.
test.each(['', 'é and ÿ', '€ 👋 \udc80\udcff', 'x'.repeat(1_000_000), '€'.repeat(1_000_000)])(
  'text %# comes back as it was',
  (text) => {
    const { kept } = tableOf()
    kept.add('before', 'neighbour', 0)
    kept.add('key', text, 0)
    kept.add('after', 'neighbour', 0)
    expect(kept.find('key') === text).toBe(true)
    expect([kept.find('before'), kept.find('after')]).toEqual(['neighbour', 'neighbour'])
  },
)

test('it holds what a map would, whatever comes and goes', () => {
  const step = fc.record({
    key: fc.integer({ min: 0, max: 400 }).map((number) => `key ${number} ${number % 7 ? '' : 'ж'}`),
    length: fc.oneof(fc.nat(300), fc.nat(60_000)),
    wait: fc.oneof({ weight: 9, arbitrary: fc.nat(200) }, fc.constant(40_000)),
  })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 600 }), fc.nat(), (steps, seed) => {
      const { deadlines, kept } = tableOf(seed)
      const model = new Map<string, { text: string; until: number }>()
      let now = 0
      for (const { key, length, wait } of steps) {
        now += wait
        deadlines.expire(now)
        for (const [name, { until }] of model) if (until <= now) model.delete(name)
        const text = `${now} `.padEnd(length, '.')
        kept.add(key, text, now)
        model.set(key, { text, until: now + lifetimeMs })
        expect(kept.size).toBe(model.size)
      }
      for (let number = 0; number <= 400; number++) {
        const key = `key ${number} ${number % 7 ? '' : 'ж'}`
        expect(kept.find(key) === model.get(key)?.text).toBe(true)
      }
    }),
    { seed: 20_261_122, numRuns: 60 },
  )
})
