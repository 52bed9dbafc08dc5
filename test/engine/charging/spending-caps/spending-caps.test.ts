/** Spend guards of one process, in virtual time. */
import { expect, test } from 'vitest'
import {
  addCustomer,
  type Books,
  customerWith,
  endedCall,
  ocsOn,
  openStore,
  openCall,
  question,
  start,
} from '../../../support/books.ts'
import { isOnPostgres } from '../../../support/on-sqlite.ts'
import { runScript, runSql } from '../../../support/stored.ts'
import { addGuard, capOf, takenOf } from '../../../support/spending-caps.ts'

const oneUnit = 1_000_000
const day = 86_400_000

/**
 * The answer to a call or an extension: by the database server at once, else when a moment has
 * passed.
 */
async function told<T>({ store, passUntil }: Books, answer: Promise<T>): Promise<T> {
  const progress = { isOver: false }
  void answer.finally(() => (progress.isOver = true))
  for (let turn = 0; turn < 50 && !progress.isOver; turn += 1) await store.settled()
  await passUntil(answer)
  return answer
}

const dial = (books: Books, uuid: string, callee = '1555', more: object = {}) =>
  told(books, books.ocs.authorize({ ...question(uuid, callee), ...more }))

const extend = (books: Books, uuid: string, usedSeconds: number) =>
  told(books, books.ocs.extend(uuid, usedSeconds))

const end = (books: Books, uuid: string, billsec: number) =>
  told(books, books.ocs.report(endedCall(uuid, billsec, { calledNumber: '1555' })))

async function guarded(more: Parameters<typeof addGuard>[2], terms = {}) {
  const books = await customerWith(oneUnit, terms)
  await addGuard(books.store, 'guard', { customer_id: books.customerId, ...more })
  await books.ocs.reloadSpendingCaps()
  return books
}

const braked = { kind: 'denied', code: 'spend_guard', capUuid: 'guard' }

test('the next call is refused, however its number is spelled, and says which guard it was', async () => {
  const books = await guarded({})
  const other = await addCustomer(books.store, { name: 'beta' })
  await addGuard(books.store, 'of another', { customer_id: other, prefix: '16' })
  await books.ocs.reloadSpendingCaps()
  expect(await dial(books, 'a', '*31#001555')).toMatchObject(braked)
  expect(books.ocs.foresee(question('a', '155512'))).toMatchObject({
    verdict: braked,
    longestSeconds: 0,
  })
  expect(await dial(books, 'b', '1666')).toMatchObject({ kind: 'granted' })
  expect(books.ocs.stats()).toMatchObject({ openCalls: 1, verdicts: { spend_guard: 1 } })
})

/** Extension 101 of tenant 3. */
const phoneOfTenant = `
  INSERT INTO tenant (id, slug, name, is_active, created_at) VALUES (3, 'a', 'A', 1, 0);
  INSERT INTO tenant_domain VALUES ('a.test', 3);
  INSERT INTO extension (id, tenant_id, domain, extension, display_name, ha1_md5, ha1_sha256, created_at, updated_at)
    VALUES (5, 3, 'a.test', '101', '', '', '', 0, 0)`

test('an emergency number is never braked', async () => {
  const books = await guarded({ prefix: '' })
  const asked = { isEmergencyNumber: true }
  expect(await dial(books, 'a', '1555', asked)).toMatchObject({ kind: 'granted' })
})

test('a guard brakes until it expires, and a removed one at once no more', async () => {
  const books = await guarded({ expires_at: start + 1_000 })
  expect(await dial(books, 'a')).toMatchObject(braked)
  books.time.advance(1_000)
  expect(await dial(books, 'b')).toMatchObject({ kind: 'granted' })
  await addGuard(books.store, 'other', { customer_id: 1, prefix: '16' })
  await books.ocs.reloadSpendingCaps()
  expect(await dial(books, 'c', '1666')).toMatchObject({ code: 'spend_guard' })
  await runSql(books.store, "UPDATE spend_guard SET ended_at = 1 WHERE guard_uuid = 'other'")
  await books.ocs.reloadSpendingCaps()
  expect(await dial(books, 'd', '1666')).toMatchObject({ kind: 'granted' })
})

test('a call without a payer is stopped by a block of its extension or tenant, and counts on no cap', async () => {
  const store = await openStore()
  await runScript(store, phoneOfTenant)
  await addGuard(store, 'guard', { extension_id: 5 })
  await addGuard(store, 'tenant', { tenant_id: 3, prefix: '16' })
  await addGuard(store, 'cap', { tenant_id: 3, prefix: '17', ...capOf(0) })
  const books = await ocsOn(store, undefined, 'allow')
  const phone = { extensionId: 5, payerTenantId: 3 }
  expect(await dial(books, 'a', '1555', phone)).toMatchObject({ ...braked, account: null })
  expect(await dial(books, 'b', '1666', phone)).toMatchObject({ capUuid: 'tenant' })
  expect(await dial(books, 'c', '1777', phone)).toMatchObject({ kind: 'granted' })
  const pbx = { caller: '101', payerTenantId: 3 }
  expect(await dial(books, 'd', '1555', pbx)).toMatchObject(braked)
  // Another phone, and what another tenant brings under the same number.
  const others = [{ ...phone, extensionId: 6 }, { ...pbx, payerTenantId: 4 }, {}]
  for (const [index, other] of others.entries())
    expect(await dial(books, `${index}`, '1555', other)).toMatchObject({ kind: 'granted' })
})

test('calls at once are granted what a cap leaves, to the second, and never more', async () => {
  // 0.06 a minute: two and a half minutes.
  const books = await guarded({ ...capOf(150_000) })
  const verdicts = ['a', 'b', 'c', 'd'].map((uuid) => dial(books, uuid))
  const seconds = (await Promise.all(verdicts)).map((verdict) =>
    verdict.kind === 'granted' ? verdict.grantedSeconds : verdict,
  )
  expect(seconds).toMatchObject([60, 60, 30, braked])
  expect(await takenOf(books.store)).toEqual({ guard: 150_000 })
  // The money that the first one has not spent is there for the next.
  await end(books, 'a', 20)
  expect(await dial(books, 'e')).toMatchObject({ kind: 'granted', grantedSeconds: 40 })
  expect(await extend(books, 'b', 50)).toMatchObject({ kind: 'denied', code: 'spend_guard' })
  await end(books, 'b', 60)
  await end(books, 'c', 30)
  await end(books, 'e', 40)
  expect(books.ocs.balanceOf(1)?.balanceMicros).toBe(850_000n)
  expect(await dial(books, 'f')).toMatchObject(braked)
})

test('a live call is extended within the cap, refused when it is used up, and pays no more than the cap', async () => {
  const books = await guarded({ ...capOf(100_000) })
  expect(await dial(books, 'a')).toMatchObject({ grantedSeconds: 60 })
  expect(await extend(books, 'a', 50)).toMatchObject({ kind: 'granted', grantedSeconds: 100 })
  expect(await extend(books, 'a', 90)).toMatchObject({ kind: 'denied', code: 'spend_guard' })
  // The call is cut a moment late: what it costs beyond the cap is not debited.
  await end(books, 'a', 101)
  expect(books.ocs.balanceOf(1)?.balanceMicros).toBe(900_000n)
})

test('what a live call has left of its grant counts on a cap that is set meanwhile', async () => {
  const books = await customerWith(oneUnit)
  await dial(books, 'a')
  await extend(books, 'a', 50)
  await addGuard(books.store, 'guard', { customer_id: 1, ...capOf(100_000) })
  await books.ocs.reloadSpendingCaps()
  // It had talked for 50 s at least of 110, so 60 s of it count, and 40 are left.
  expect(await dial(books, 'b')).toMatchObject({ kind: 'granted', grantedSeconds: 40 })
  expect(await extend(books, 'a', 100)).toMatchObject({ kind: 'denied', code: 'spend_guard' })
  await end(books, 'a', 80)
  // 30 s of it were not used.
  expect(await dial(books, 'c')).toMatchObject({ kind: 'granted', grantedSeconds: 30 })
})

test('a block lets live calls go on, and ends those that it is told to end', async () => {
  const books = await customerWith(oneUnit)
  await dial(books, 'a')
  await dial(books, 'b', '1666')
  void books.ocs.answered(openCall('a', start), '{}')
  await addGuard(books.store, 'guard', { customer_id: 1 })
  await books.ocs.reloadSpendingCaps()
  expect(await extend(books, 'a', 50)).toMatchObject({ kind: 'granted' })
  expect(books.ocs.alive(['a', 'b'], books.time.now())).toEqual([])
  await runSql(books.store, `UPDATE spend_guard SET ends_calls_before = ${start + 1}`)
  await books.ocs.reloadSpendingCaps()
  expect(books.ocs.alive(['a', 'b'], books.time.now())).toEqual([
    { callUuid: 'a', code: 'spend_guard' },
  ])
  // A node that asks over HTTP gives no signs of life.
  const late = await told(books, books.ocs.extendForNode('a', 100))
  expect(late).toEqual({ kind: 'denied', code: 'spend_guard' })
})

test('a cap that is removed while calls hold more than it is asked for no more', async () => {
  const books = await customerWith(oneUnit)
  const { statements } = books.store
  await dial(books, 'a')
  await addGuard(books.store, 'guard', { customer_id: 1, ...capOf(10_000) })
  await books.ocs.reloadSpendingCaps()
  const stored = () =>
    statements.prepare("SELECT amount, version FROM share WHERE kind = 'cap'").all([])
  await books.pass(1_000)
  expect(await stored()).toMatchObject([{ amount: 60_000 }])
  await runSql(books.store, 'UPDATE spend_guard SET ended_at = 1')
  await books.ocs.reloadSpendingCaps()
  const before = await stored()
  for (let second = 0; second < 15; second += 1) await books.pass(1_000)
  expect(await stored()).toEqual(before)
})

test('a cap of a day begins again at midnight UTC, with what calls are granted from then on', async () => {
  const books = await guarded({ ...capOf(60_000), per: 'day' })
  await books.pass(day - (start % day) - 30_000)
  expect(await dial(books, 'a')).toMatchObject({ grantedSeconds: 60 })
  expect(await dial(books, 'b')).toMatchObject(braked)
  await books.pass(30_000)
  expect(await extend(books, 'a', 50)).toMatchObject({ kind: 'granted', grantedSeconds: 110 })
  expect(await dial(books, 'c')).toMatchObject({ kind: 'granted', grantedSeconds: 10 })
  expect(await takenOf(books.store)).toEqual({ guard: 120_000 })
})

test('a call counts on every cap that covers it: the least of them decides', async () => {
  const books = await guarded({ ...capOf(90_000) })
  await addGuard(books.store, 'wide', { customer_id: 1, prefix: '1', ...capOf(120_000) })
  await books.ocs.reloadSpendingCaps()
  expect(await dial(books, 'a')).toMatchObject({ grantedSeconds: 60 })
  expect(await dial(books, 'b')).toMatchObject({ grantedSeconds: 30 })
  expect(await dial(books, 'c')).toMatchObject(braked)
  expect(await dial(books, 'd', '1666')).toMatchObject({ grantedSeconds: 30 })
  expect(await dial(books, 'e', '1666')).toMatchObject({ capUuid: 'wide' })
})

test('a cap in another currency than the wallet stops the call: it cannot be counted', async () => {
  const books = await guarded({ ...capOf(oneUnit), currency: 'EUR' })
  expect(await dial(books, 'a')).toMatchObject(braked)
})

test('what was spent of a cap is spent after a restart, and what was not is there', async () => {
  const books = await guarded({ ...capOf(100_000) })
  await dial(books, 'a')
  await end(books, 'a', 20)
  await told(books, books.ocs.stop())
  expect(await takenOf(books.store)).toEqual({ guard: 20_000 })
  const next = await ocsOn(books.store, books.time)
  expect(await dial(next, 'b')).toMatchObject({ grantedSeconds: 60 })
  expect(await dial(next, 'c')).toMatchObject({ grantedSeconds: 20 })
  expect(await dial(next, 'd')).toMatchObject(braked)
})

test('a crash gives no cap a second time, and a call that goes on is held to it', async () => {
  const books = await guarded({ ...capOf(100_000) })
  await dial(books, 'a')
  const call = openCall('a', start, { calledNumber: '1555', customerId: 1 })
  await told(books, books.ocs.answered(call, '{}'))
  const next = await ocsOn(books.store, books.time)
  await next.ocs.start()
  expect(next.ocs.resume('a')).toBe(true)
  expect(await dial(next, 'b')).toMatchObject({ grantedSeconds: 40 })
  expect(await extend(next, 'a', 50)).toMatchObject({ kind: 'denied', code: 'spend_guard' })
  expect(await takenOf(books.store)).toEqual({ guard: 100_000 })
})

test("a call that goes on is still braked by its source, whose customer is the platform's", async () => {
  const books = await customerWith(oneUnit)
  await runScript(books.store, phoneOfTenant)
  const sources = {
    a: ['1555', { payerTenantId: 3 }],
    b: ['1555', { payerTenantId: null }],
    c: ['1666', { payerTenantId: 3, extensionId: 5 }],
    // It shows the number of the extension, and is not the extension.
    d: ['1666', { payerTenantId: 3, caller: '101', mayNamePayer: false }],
    e: ['1555', { payerTenantId: 3, isEmergencyNumber: true }],
    f: ['1777', { payerTenantId: 3, sentAs: () => ['+1555'] }],
  } as const
  for (const [uuid, [callee, source]] of Object.entries(sources)) {
    await dial(books, uuid, callee, { customerId: 1, ...source })
    const callerNumber = 'caller' in source ? source.caller : '+15550001'
    const call = { callerNumber, calledNumber: callee, customerId: 1 }
    await told(books, books.ocs.answered(openCall(uuid, start, call), '{}'))
  }
  await addGuard(books.store, 'tenant', { tenant_id: 3, ends_calls_before: start })
  const ofPhone = { extension_id: 5, prefix: '1666', ends_calls_before: start }
  await addGuard(books.store, 'phone', ofPhone)
  const next = await ocsOn(books.store, books.time)
  await next.ocs.start()
  const uuids = Object.keys(sources)
  for (const uuid of uuids) expect(next.ocs.resume(uuid)).toBe(true)
  const revoked = next.ocs.alive(uuids, books.time.now())
  expect(revoked.map(({ callUuid }) => callUuid)).toEqual(['a', 'c', 'f'])
})

test.each([
  ["UPDATE share SET amount = 0 WHERE kind = 'cap'"],
  ["UPDATE share SET amount = 10000 WHERE kind = 'cap'"],
  ["DELETE FROM share WHERE kind = 'cap'"],
])('what a server forgets of a cap, the process that has taken it has not: %s', async (loss) => {
  const books = await guarded({ ...capOf(100_000) })
  expect(await dial(books, 'a')).toMatchObject({ grantedSeconds: 60 })
  await runSql(books.store, loss)
  expect(await dial(books, 'b')).toMatchObject({ grantedSeconds: 40 })
  expect(await dial(books, 'c')).toMatchObject(braked)
  expect(await takenOf(books.store)).toEqual({ guard: 100_000 })
})

/** Each a statement. */
const refuseCaps = isOnPostgres
  ? [
      "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'no'; END $$",
      "CREATE TRIGGER refuse_caps BEFORE INSERT ON share FOR EACH ROW WHEN (NEW.kind = 'cap') EXECUTE FUNCTION refuse()",
    ]
  : [
      "CREATE TRIGGER refuse_caps BEFORE INSERT ON share WHEN NEW.kind = 'cap' BEGIN SELECT RAISE(ABORT, 'no'); END",
    ]

test('while the database does not say what is left of a cap, its calls are told to come back', async () => {
  const books = await guarded({ ...capOf(100_000) })
  await dial(books, 'a', '1666')
  for (const statement of refuseCaps) await runSql(books.store, statement)
  expect(await dial(books, 'b')).toMatchObject({ kind: 'unreachable' })
  expect(await dial(books, 'c', '1666')).toMatchObject({ kind: 'granted' })
  await runSql(books.store, `DROP TRIGGER refuse_caps${isOnPostgres ? ' ON share' : ''}`)
  expect(await dial(books, 'd')).toMatchObject({ kind: 'granted', grantedSeconds: 60 })
})
