import { expect, test } from 'vitest'
import {
  addCustomer,
  addPlan,
  customerWith,
  endedCall,
  openStore,
  ocsOn,
  question,
  start,
} from '../../../support/books.ts'
import { readValue, runScript, runSql } from '../../../support/stored.ts'
import type { TestStore } from '../../../support/test-store.ts'

const oneUnit = 1_000_000

/** Tenants 3 (a.test) and 4 (b.test), and extensions of them, each with its customer. */
async function addTenants(
  store: TestStore,
  extensions: readonly (readonly [
    number: string,
    tenantId: 3 | 4,
    customerId: number | null,
  ])[] = [],
): Promise<void> {
  await runScript(
    store,
    `INSERT INTO tenant (id, slug, name, is_active, created_at) VALUES (3, 'a', 'A', 1, 0), (4, 'b', 'B', 1, 0);
    INSERT INTO tenant_domain VALUES ('a.test', 3), ('b.test', 4)`,
  )
  for (const [number, tenantId, customerId] of extensions)
    await runSql(
      store,
      `INSERT INTO extension (tenant_id, domain, extension, display_name, customer_id, ha1_md5, ha1_sha256,
          created_at, updated_at) VALUES (?, ?, ?, '', ?, '', '', 0, 0)`,
      tenantId,
      tenantId === 3 ? 'a.test' : 'b.test',
      number,
      customerId,
    )
}

test('a payer is found by its number with and without its plus, but the customer that the source determines pays', async () => {
  const { ocs, customerId } = await customerWith(oneUnit)
  const granted = { kind: 'granted', account: { customerId } }
  expect(await ocs.authorize(question('a', '1555', '15550001'))).toMatchObject(granted)
  const asked = { ...question('b', '1555', '+1999'), customerId }
  expect(await ocs.authorize(asked)).toMatchObject(granted)
})

test("an extension's number leads to its customer, unless two domains disagree", async () => {
  const { store, ocs, customerId } = await customerWith(oneUnit)
  const other = await addCustomer(store, { name: 'beta' })
  await addTenants(store, [
    ['101', 3, customerId],
    ['102', 3, customerId],
    ['102', 4, other],
  ])
  await ocs.reloadCustomers()
  const by = (caller: string) => ocs.authorize(question(caller, '1555', caller))
  expect(await by('101')).toMatchObject({ account: { customerId } })
  expect(await by('102')).toMatchObject({ code: 'unknown_caller' })
})

test('a customer of another tenant than the one that asks is one of nobody: nothing is reserved', async () => {
  const { store, ocs, customerId } = await customerWith(oneUnit, { max_cps: 1 })
  await addTenants(store)
  await runSql(store, 'UPDATE customer SET tenant_id = 3')
  await ocs.reloadCustomers()
  expect(await ocs.authorize({ ...question('a'), payerTenantId: 4 })).toEqual({
    kind: 'denied',
    code: 'unknown_caller',
    account: null,
  })
  expect(ocs.stats()).toMatchObject({ openCalls: 0, reservedMicros: 0n })
  // Nor does it count as an attempt of that customer.
  expect(await ocs.authorize({ ...question('b'), payerTenantId: 3 })).toMatchObject({
    kind: 'granted',
    account: { customerId, tenantId: 3 },
  })
})

test('a customer of the platform pays for a tenant where the platform has said so, not by a number', async () => {
  const { ocs, customerId } = await customerWith(oneUnit)
  const asked = { ...question('a'), payerTenantId: 4 }
  expect(await ocs.authorize(asked)).toMatchObject({ kind: 'denied', code: 'unknown_caller' })
  expect(await ocs.authorize({ ...asked, customerId })).toMatchObject({ kind: 'granted' })
})

test.each(['deny', 'allow'] as const)(
  'where no number may name a payer, none is found by it (UNKNOWN_CALLER=%s)',
  async (unknownCaller) => {
    const { store, customerId } = await customerWith(oneUnit)
    const { ocs } = await ocsOn(store, undefined, unknownCaller)
    const asked = { ...question('a'), mayNamePayer: false }
    expect(await ocs.authorize(asked)).toMatchObject(
      unknownCaller === 'deny'
        ? { kind: 'denied', code: 'no_payer', account: null }
        : { kind: 'granted', account: { customerId: null } },
    )
    expect(await ocs.authorize({ ...asked, callUuid: 'b', customerId })).toMatchObject({
      kind: 'granted',
      account: { customerId },
    })
  },
)

test("an extension names its customer within its tenant, whatever other tenants' extensions are called", async () => {
  const { ocs, store, customerId } = await customerWith(oneUnit)
  await addTenants(store, [
    ['101', 3, customerId],
    ['101', 4, null],
  ])
  await runSql(store, 'UPDATE customer SET tenant_id = 3')
  await ocs.reloadCustomers()
  const asked = question('a', '1555', '101')
  expect(await ocs.authorize(asked)).toMatchObject({ kind: 'denied', code: 'unknown_caller' })
  expect(await ocs.authorize({ ...asked, payerTenantId: 3 })).toMatchObject({ kind: 'granted' })
})

test('an unknown caller is refused, or let through at no cost where that is allowed', async () => {
  const { ocs } = await customerWith(oneUnit)
  expect(await ocs.authorize(question('a', '4930', '+1999'))).toEqual({
    kind: 'denied',
    code: 'unknown_caller',
    account: null,
  })
  const open = await ocsOn(await openStore(), undefined, 'allow')
  expect(await open.ocs.authorize(question('a', '4930', '+1999'))).toMatchObject({
    kind: 'granted',
    grantedSeconds: Infinity,
    account: { customerId: null },
  })
  const stored = open.ocs.report(endedCall('a', 300, { callerNumber: '+1999' }))
  open.time.advance(100)
  await stored
  expect(await readValue(open.store, 'SELECT cost_micros FROM cdr')).toBe(0)
})

test('a destination without a price is refused, one that is free is granted without end', async () => {
  const store = await openStore()
  const free = { prefix: '800', first_rate_per_minute_micros: 0, rate_per_minute_micros: 0 }
  const planId = await addPlan(store, [free])
  await addCustomer(store, { name: '+15550001', rate_plan_id: planId })
  const { ocs } = await ocsOn(store)
  expect(await ocs.authorize(question('a', '900'))).toMatchObject({ code: 'no_rate' })
  expect(await ocs.authorize(question('b', '800555'))).toMatchObject({ grantedSeconds: Infinity })
})

test.each([
  ['a price in another currency than the wallet', "rate_plan SET currency = 'EUR'", 'no_rate'],
  ['a blocked prefix', 'rate SET is_blocked = 1', 'destination_blocked'],
])('%s denies', async (_, change, code) => {
  const { ocs, store } = await customerWith(oneUnit)
  await runSql(store, `UPDATE ${change}`)
  await ocs.reload()
  expect(await ocs.authorize(question('a'))).toMatchObject({ code })
})

test('an inactive customer, or one of an inactive tenant, neither starts nor extends a call', async () => {
  const { ocs, store } = await customerWith(oneUnit)
  await ocs.authorize(question('a', '1555'))
  await runSql(store, 'UPDATE customer SET is_active = 0')
  await ocs.reload()
  expect(await ocs.authorize(question('b'))).toMatchObject({ code: 'customer_inactive' })
  expect(await ocs.extend('a', 50)).toMatchObject({ code: 'customer_inactive' })
  await addTenants(store)
  await runScript(
    store,
    'UPDATE customer SET is_active = 1, tenant_id = 3; UPDATE tenant SET is_active = 0',
  )
  await ocs.reload()
  expect(await ocs.authorize(question('b'))).toMatchObject({ code: 'customer_inactive' })
})

test('no more calls are open at once than allowed; an ended call makes room at once', async () => {
  const { ocs } = await customerWith(10 * oneUnit, { max_concurrent_calls: 2 })
  await ocs.authorize(question('a'))
  await ocs.authorize(question('b'))
  expect(await ocs.authorize(question('c'))).toMatchObject({ code: 'concurrent_limit' })
  const stored = ocs.report(endedCall('a', 5))
  expect(await ocs.authorize(question('c'))).toMatchObject({ kind: 'granted' })
  void ocs.stop()
  await stored
})

test('no more calls start within any second than allowed', async () => {
  const { ocs, time } = await customerWith(10 * oneUnit, { max_cps: 2 })
  const kindAt = async (ms: number, uuid: string) => {
    time.advance(start + ms - time.now())
    return (await ocs.authorize(question(uuid, '1555'))).kind
  }
  expect([
    await kindAt(0, 'a'),
    await kindAt(600, 'b'),
    await kindAt(999, 'c'),
    await kindAt(1_000, 'd'),
    await kindAt(1_599, 'e'),
    await kindAt(1_600, 'f'),
  ]).toEqual(['granted', 'granted', 'denied', 'granted', 'denied', 'granted'])
})

test('a day costs no more than allowed, promises included, and the next day is a new one', async () => {
  const { ocs, time, store, passUntil } = await customerWith(10 * oneUnit, {
    max_daily_spend_micros: 1_000_000,
  })
  await ocs.authorize(question('a'))
  expect(await ocs.authorize(question('b'))).toMatchObject({ code: 'daily_spend_limit' })
  await passUntil(ocs.report(endedCall('a', 20)))
  expect(await ocs.authorize(question('c'))).toMatchObject({ code: 'daily_spend_limit' })
  // The spent sum is known after a restart as well.
  const restarted = await ocsOn(store, time)
  expect(await restarted.ocs.authorize(question('c'))).toMatchObject({ code: 'daily_spend_limit' })
  time.stall(24 * 3_600_000)
  expect(await restarted.ocs.authorize(question('d'))).toMatchObject({ kind: 'granted' })
})

test('no call is granted more than the cap per call', async () => {
  const { ocs } = await customerWith(10 * oneUnit, { max_call_seconds: 90 })
  await ocs.authorize(question('a', '1555'))
  expect(await ocs.extend('a', 50)).toEqual({ kind: 'granted', grantedSeconds: 90 })
  expect(await ocs.extend('a', 80)).toEqual({ kind: 'denied', code: 'max_call_seconds' })
})

test('what authorize would answer is told with price and longest call, and counts nothing', async () => {
  const { ocs } = await customerWith(oneUnit, { max_cps: 1 })
  const { callUuid: _, ...asked } = question('a', '1555')
  const before = ocs.stats()
  for (let count = 0; count < 3; count += 1)
    expect(ocs.foresee(asked)).toMatchObject({
      verdict: { kind: 'granted', account: { customerId: 1, ratePrefix: '1' } },
      tariff: { prefix: '1', ratePerMinuteMicros: 60_000 },
      longestSeconds: 1_000,
    })
  expect(ocs.stats()).toEqual(before)
  await ocs.authorize(question('a', '1555'))
  expect(ocs.foresee(asked)).toMatchObject({
    verdict: { kind: 'denied', code: 'cps_limit' },
    tariff: { prefix: '1' },
    longestSeconds: 0,
  })
  expect(ocs.foresee({ ...asked, caller: '999' })).toMatchObject({
    verdict: { kind: 'denied', code: 'unknown_caller' },
    tariff: null,
  })
})
