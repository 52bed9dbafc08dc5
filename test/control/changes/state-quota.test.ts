/**
 * The states that changes hold are bounded: the oldest give way, and who changed what, when and why
 * stays.
 */
import { describe, expect, test } from 'vitest'
import { ChangeStore, type NewChangeEntry } from '../../../control/changes/change-store.ts'
import { StateQuota } from '../../../control/changes/state-quota.ts'
import { Retention } from '../../../control/observe/retention/retention.ts'
import type { Store } from '../../../schema/storage/store.ts'
import { transaction } from '../../../schema/sql/query.ts'
import { changeEntry } from '../../support/change-entries.ts'
import { hasPostgres } from '../../support/postgres.ts'
import { eachDatabase, sharedDatabase } from '../../support/shared-database.ts'
import { readColumn, readRow, readValue, runSql } from '../../support/stored.ts'
import { openToolRig } from '../../support/tools-rig.ts'

const second = 1_000
const day = 86_400_000

/** Room for ten states of 5,000 bytes, and three temporary changes. */
const limits = { bytes: 50_000, temporary: 3 }

/** A change of one field, whose states have this many bytes; the later, the higher its number. */
const change = (number: number, bytes: number, more: Partial<NewChangeEntry> = {}) =>
  changeEntry({
    change_id: `change ${number}`,
    at: number * second,
    tenant_id: 1,
    reason: 'asked for',
    effect: 'It is changed.',
    state_before: JSON.stringify({ text: 'x'.repeat(bytes - 21) }),
    state_after: '{"text":1}',
    ...more,
  })

const opened = (store: Store, bound = limits) => {
  const entries = new ChangeStore(store, new StateQuota(store, () => bound))
  const enter = (...given: Parameters<typeof change>) =>
    transaction(store, () => entries.insert(change(...given)))
  const found = async (number: number) => {
    const entry = await entries.find(`change ${number}`, null)
    if (entry === undefined) throw new Error(`there is no change ${number}`)
    return entry
  }
  const whole = () =>
    readColumn<string>(
      store,
      "SELECT change_id FROM change_entry WHERE state_before LIKE '%xxx%' ORDER BY id",
    )
  /** The changes of tenant 1. */
  const counted = async () => {
    const value = await readValue<string>(
      store,
      "SELECT value FROM setting WHERE name = 'change_states:1'",
    )
    return value === undefined ? undefined : (JSON.parse(value) as Record<string, number>)
  }
  return { entries, enter, found, whole, counted }
}

const numbers = (from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, index) => from + index)
const names = (from: number, to: number) => numbers(from, to).map((number) => `change ${number}`)

describe.each(eachDatabase)('on $database', ({ open }) => {
  test('the oldest states of a tenant give way to new ones, and the entries stay', async () => {
    const { enter, found, whole, counted } = opened(await open())
    for (const number of numbers(1, 25)) await enter(number, 5_000)
    expect([await whole(), (await counted())?.['bytes']]).toEqual([names(16, 25), 50_000])
    expect(await found(1)).toMatchObject({
      actor: 'user:ada',
      at: second,
      tool: 'PATCH /things',
      reason: 'asked for',
      target_id: '7',
      effect: 'It is changed.',
      undo: 'none',
      state: 'made',
      state_before: '{"text":"no longer kept"}',
      state_after: '{"text":"no longer kept"}',
    })
    // As much as it brings, whatever that is.
    await enter(26, 17_500)
    expect(await whole()).toEqual(names(20, 26))
  })

  test('another tenant and the platform lose nothing by it', async () => {
    const store = await open()
    const { enter, whole } = opened(store)
    await enter(1, 5_000, { tenant_id: 2 })
    await enter(2, 5_000, { tenant_id: null })
    for (const number of numbers(3, 15)) await enter(number, 5_000)
    expect(await whole()).toEqual([...names(1, 2), ...names(6, 15)])
  })

  test('the state of a temporary change stays until its end, and too many of them are refused', async () => {
    const store = await open()
    const { entries, enter, found, whole, counted } = opened(store)
    const temporary = { expires_at: day }
    for (const number of numbers(1, 3)) await enter(number, 5_000, temporary)
    await expect(enter(4, 5_000, temporary)).rejects.toMatchObject({
      status: 409,
      code: 'too_many_temporary_changes',
    })
    expect(await readValue(store, 'SELECT count(*) FROM change_entry')).toBe(3)
    for (const number of numbers(5, 20)) await enter(number, 5_000)
    expect(await whole()).toEqual([...names(1, 3), ...names(11, 20)])
    const over = { undone_at: day, undone_by: 'platform', undo_reason: null }
    await entries.end(await found(1), { ...over, state: 'expired' })
    // A later change may lead back to the state before it.
    await entries.end(await found(2), { ...over, state: 'superseded' })
    await entries.end(await found(1), { ...over, state: 'expired' })
    expect(await whole()).toEqual([...names(2, 3), ...names(11, 20)])
    expect(await counted()).toMatchObject({ temporary: 2, bytes: 50_000 })
    await enter(21, 5_000, temporary)
    await expect(enter(22, 5_000, temporary)).rejects.toThrow('temporary changes')
  })

  test('what is deleted makes room, and nothing is left of an owner without changes', async () => {
    const store = await open()
    const { entries, enter, whole, counted } = opened(store)
    for (const number of numbers(1, 15)) await enter(number, 5_000)
    await enter(16, 5_000, { state: 'pending', claimed_until: day })
    await entries.remove('change 16')
    expect(await counted()).toMatchObject({ bytes: 45_000 })
    await enter(17, 5_000)
    let now = 10 * day + 9 * second
    const periods = { callRecordDays: 0, auditDays: 10 }
    const retention = new Retention({ store, now: () => now, log: () => undefined }, periods)
    await retention.step()
    expect([await whole(), await counted()]).toMatchObject([
      [...names(9, 15), 'change 17'],
      { bytes: 40_000 },
    ])
    now += day
    await retention.step()
    expect([await whole(), await counted()]).toEqual([[], undefined])
  })
})

test.runIf(hasPostgres)(
  'changes that several instances enter at once are all counted',
  async () => {
    const { open } = await sharedDatabase()
    const instances = [opened(await open()), opened(await open()), opened(await open())]
    await Promise.all(
      instances.map(async ({ enter }, instance) => {
        for (const number of numbers(1, 8)) await enter(10 * instance + number, 5_000)
      }),
    )
    const [one] = instances
    expect(await one?.whole()).toHaveLength(10)
    expect(await one?.counted()).toMatchObject({ bytes: 50_000 })
  },
)

test('undoing a change whose state has given way is refused with the reason, and the list says so', async () => {
  const rig = await openToolRig()
  const acme = await rig.key({ tenant_scope: 'tenant', tenant_slug: 'acme' })
  const patch = async (max_cps: number) => {
    const path = '/api/v1/customers/1?reason=as+agreed'
    const answer = await rig.request(path, { token: acme, method: 'PATCH', body: { max_cps } })
    expect([answer.status, answer.text]).toEqual([200, answer.text])
    return `/api/v1/changes/${answer.headers.get('x-change-id')}`
  }
  const undo = (path: string) =>
    rig.request(`${path}/undo`, { token: acme, body: { reason: 'a mistake' } })
  const first = await patch(3)
  await transaction(rig.store, async () => {
    const [tenant_id = null] = await readColumn<number>(
      rig.store,
      'SELECT tenant_id FROM change_entry',
    )
    const entries = new ChangeStore(rig.store)
    // 16 MiB of them.
    for (const number of numbers(1, 256))
      await entries.insert(change(number, 65_537, { tenant_id, at: rig.now() }))
  })
  const [last, latest] = [await patch(4), await patch(5)]
  const refused = await undo(first)
  expect([refused.status, refused.code]).toEqual([409, 'not_reversible'])
  expect(refused.text).toContain('to make room for later changes of this tenant')
  expect((await rig.request(first, { token: acme })).data<object>()).toMatchObject({
    reason: 'as agreed',
    state: 'made',
    is_reversible: false,
    is_state_kept: false,
    before: { max_cps: 'no longer kept' },
    after: { max_cps: 'no longer kept' },
    effect: 'The customer "acme customer" is changed: calls per second 3, was unlimited.',
  })
  for (const path of [latest, last]) expect((await undo(path)).status).toBe(200)
  expect(await readRow(rig.store, 'SELECT max_cps FROM customer WHERE id = 1')).toEqual({
    max_cps: 3,
  })
  // Once more: that it was undone is known, whatever is kept of it.
  await runSql(rig.store, "UPDATE change_entry SET undo = 'none' WHERE state = 'undone'")
  expect((await undo(last)).data<object>()).toMatchObject({ changed: false })
})
