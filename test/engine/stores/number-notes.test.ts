import { describe, expect, test } from 'vitest'
import { logNumberNotes, numberNotes } from '../../../engine/stores/number-notes.ts'
import type { Store } from '../../../schema/storage/store.ts'
import { execute } from '../../../schema/sql/query.ts'
import { addPlan } from '../../support/books.ts'
import { eachDatabase } from '../../support/shared-database.ts'

const price = { first_rate_per_minute_micros: 1, rate_per_minute_micros: 1 }

async function route(store: Store, prefix: string, mode: 'static' | 'block', isActive: 0 | 1 = 1) {
  const row = { name: `${mode} ${prefix}`, tenant_id: null, customer_id: null, carrier_id: null }
  const values = { ...row, prefix, mode, is_active: isActive, created_at: 0 } as const
  await execute(store, store.db.insertInto('outbound_route').values(values))
}

describe.each(eachDatabase)('numbers on $database', ({ open }) => {
  test('without exit codes, blocks of numbers that a code may stand in front of are told, with what to do', async () => {
    const store = await open()
    await addPlan(store, [
      { prefix: '49', ...price },
      { prefix: '+1900', is_blocked: 1, ...price },
      { prefix: '44', is_blocked: 1, ...price },
      { prefix: '0900', is_blocked: 1, ...price },
    ])
    await route(store, '882', 'block')
    await route(store, '883', 'block', 0)
    const [line, ...others] = await numberNotes(store, undefined)
    expect(others).toEqual([])
    expect(line).toContain('EXIT_CODES is not set: 2 blocked rates and 1 blocking route, such as ')
    expect(line).toMatch(
      /not 00(1900|44)… or 011(1900|44)…: set it to what is dialled in place of \+/,
    )
    // A setting that says what is dialled ends the warning.
    expect(await numberNotes(store, [])).toEqual([])
    expect(await numberNotes(store, ['00'])).toEqual([])
  })

  test('without exit codes, rates and routes that begin with one are told', async () => {
    const store = await open()
    await addPlan(store, [
      { prefix: '49', ...price },
      { prefix: '0049', ...price },
    ])
    await route(store, '011', 'static')
    expect(await numberNotes(store, undefined)).toEqual([
      expect.stringContaining('1 rate and 1 route, such as 0049, begin like an exit code'),
    ])
  })

  test('with exit codes, rates of a plan that are one prefix are told, each pair once', async () => {
    const store = await open()
    await addPlan(store, [
      { prefix: '44', ...price },
      { prefix: '0044', ...price },
      { prefix: '+01144', ...price },
      { prefix: '0033', ...price },
      { prefix: '1144', ...price },
      { prefix: '00', ...price },
    ])
    const pairs = (await numberNotes(store, ['0011', '011', '00'])).map(
      (line) => /^rate plan "default": (.*) are one prefix/.exec(line)?.[1] ?? line,
    )
    // 001144 would be +44 by 0011, and 1144 is none of them.
    expect(pairs.toSorted()).toEqual(['0044 and +01144', '44 and +01144', '44 and 0044'])
    expect(await numberNotes(store, ['810'])).toEqual([])
  })

  test('a start goes on when they cannot be compared', async () => {
    const store = await open()
    const failing = (): never => {
      throw new Error('canceling statement due to statement timeout')
    }
    const statements = Object.assign(Object.create(store.statements), { prepare: failing })
    const told: string[] = []
    await logNumberNotes({ db: store.db, statements }, ['00'], (level, message) =>
      told.push(`${level} ${message}`),
    )
    expect(told).toEqual(['warn numbers: the prefixes of rates and routes could not be compared'])
  })
})
