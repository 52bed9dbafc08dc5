/** Seed files on each database. */
import { describe, expect, test } from 'vitest'
import { SeedRefused } from '../../../control/resources/seed.ts'
import { seedFile } from '../../../engine/commands/seed.ts'
import { eachDatabase } from '../../support/shared-database.ts'
import { readColumn, readValue } from '../../support/stored.ts'

const now = Date.UTC(2026, 0, 2)
const rates = Array.from({ length: 1_500 }, (_, n) => ({
  rate_plan: n % 2 === 0 ? 'a' : 'b',
  prefix: String(9_999 - n),
  rate_per_minute: '0.10',
}))
const file = {
  tenants: [{ slug: 'acme', name: 'Acme', domains: ['acme.example'] }],
  rate_plans: [
    { name: 'b', currency: 'EUR', decimals: 4 },
    { name: 'a', currency: 'EUR', decimals: 4 },
  ],
  rates,
  customers: [{ name: 'acme', tenant: 'acme', rate_plan: 'a', balance: '10.00' }],
  dispatcher: [{ endpoint_name: 'pbx', algorithm: '8', set_id: 1, nodes: [{ host: '10.0.0.1' }] }],
}

describe.each(eachDatabase)('a seed file on $database', ({ open }) => {
  test('it is applied whole, rates in the order of their index, and changes nothing the second time', async () => {
    const store = await open()
    const first = await seedFile(store, JSON.stringify(file), now)
    expect(first.rates).toEqual({ created: 1_500, updated: 0, unchanged: 0 })
    const ids = await readColumn(store, 'SELECT id FROM rate ORDER BY rate_plan_id, prefix')
    expect(ids).toEqual(await readColumn(store, 'SELECT id FROM rate ORDER BY id'))
    const again = await seedFile(store, JSON.stringify(file), now)
    for (const { created, updated } of Object.values(again))
      expect([created, updated]).toEqual([0, 0])
    const dearer = {
      ...file,
      rates: rates.with(7, { ...rates[7], rate_per_minute: '0.2' } as never),
    }
    const third = await seedFile(store, JSON.stringify(dearer), now)
    expect(third.rates).toEqual({ created: 0, updated: 1, unchanged: 1_499 })
  })

  test('one with a fault in its last element leaves nothing, money included', async () => {
    const store = await open()
    const wrong = {
      ...file,
      inbound_routes: [{ name: 'x', prefix: '1', target_type: 'set', target: '7' }],
    }
    await expect(seedFile(store, JSON.stringify(wrong), now)).rejects.toThrow(SeedRefused)
    for (const table of ['tenant', 'rate_plan', 'rate', 'customer', 'wallet', 'ledger_entry'])
      expect([table, await readValue(store, `SELECT count(*) FROM ${table}`)]).toEqual([table, 0])
  })
})
