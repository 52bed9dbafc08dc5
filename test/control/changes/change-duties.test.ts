import { kinds } from '../../../control/resources/kinds.ts'
import { nowhere } from '../../../schema/rules/gateways.ts'
import { randomBytes } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { AuditLog } from '../../../control/changes/audit.ts'
import { ChangeDuties } from '../../../control/changes/change-duties.ts'
import { ChangeStore } from '../../../control/changes/change-store.ts'
import type { Store } from '../../../schema/storage/store.ts'
import { changeEntry } from '../../support/change-entries.ts'
import { deferred } from '../../support/deferred.ts'
import { hasPostgres } from '../../support/postgres.ts'
import { sharedDatabase } from '../../support/shared-database.ts'
import { failing, readColumn, readRows } from '../../support/stored.ts'
import { testEngine } from '../../support/test-engine.ts'
import { openToolRig, type ToolRig } from '../../support/tools-rig.ts'
import { newKeyBody } from '../../../control/auth/app-key.ts'
import { consoleGrantor, issueKey } from '../../../control/auth/issue-key.ts'
import { KeyStore } from '../../../control/auth/key-store.ts'

const first = 'sip:10.0.0.1:5060;transport=udp'
const second = 'sip:10.0.0.2:5060;transport=udp'
const minute = 60_000

type Made = { change_id: string; changed: boolean; effect: string; expires_at: string | null }

/** As a process that has just started. */
const started = (rig: ToolRig): ChangeDuties =>
  new ChangeDuties({
    ...rig.deps,
    kinds,
    keys: rig.access.keys,
    tenants: rig.access.tenants,
    audit: rig.access.audit,
    now: rig.now,
    newCorrelationId: () => 'c',
  })

const nodeStates = ({ engine }: ToolRig): readonly string[] =>
  engine.dispatcher.status(1).flatMap(({ nodes }) => nodes.map(({ state }) => state))

const entryStates = ({ store }: ToolRig) =>
  readColumn<string>(store, 'SELECT state FROM change_entry ORDER BY id')

const set = (rig: ToolRig, state: string, more: object = {}) =>
  rig.tool('set_dispatcher_state', { state, setId: 1, destination: first, ...more })

const drain = async (rig: ToolRig, more: object = {}): Promise<Made> =>
  (await set(rig, 'inactive', more)).data<Made>()

test('after its duration a change is undone, not before, also by a process that started since', async () => {
  const rig = await openToolRig()
  const made = await drain(rig, { duration: 60, reason: 'one-way audio' })
  expect(made.expires_at).toBe(new Date(rig.now() + minute).toISOString())
  rig.tick(minute - 1)
  await started(rig).poll()
  expect(nodeStates(rig)).toEqual(['inactive', 'active'])
  rig.tick(1)
  await started(rig).poll()
  expect(nodeStates(rig)).toEqual(['active', 'active'])
  expect(await entryStates(rig)).toEqual(['expired'])
  await set(rig, 'inactive')
  await started(rig).poll()
  expect(nodeStates(rig)).toEqual(['inactive', 'active'])
  const entries =
    "SELECT actor, action, change_id, reason FROM audit_entry WHERE actor = 'platform'"
  expect(await readRows(rig.store, entries)).toEqual([
    {
      actor: 'platform',
      action: 'expire set_dispatcher_state',
      change_id: made.change_id,
      reason: 'one-way audio',
    },
  ])
  const undone = await rig.tool('undo_change', { change_id: made.change_id, reason: 'too late' })
  expect(undone.data<Made>()).toMatchObject({ changed: false })
})

test('a clock that is set forward ends no change', async () => {
  const rig = await openToolRig()
  const { changes } = rig
  await drain(rig, { duration: 60 })
  rig.jump(3_600_000)
  await changes.poll()
  expect(nodeStates(rig)).toEqual(['inactive', 'active'])
  rig.tick(minute)
  await changes.poll()
  expect(nodeStates(rig)).toEqual(['active', 'active'])
})

test('a repeated change makes it last longer, never shorter, and one undo brings the first state back', async () => {
  const rig = await openToolRig()
  await drain(rig, { duration: 120 })
  const shorter = await drain(rig, { duration: 60 })
  expect(shorter).toMatchObject({ changed: false, change_id: null })
  const longer = await drain(rig, { duration: 180 })
  expect(longer).toMatchObject({
    changed: true,
    effect: expect.stringMatching(/^It stays so until/),
  })
  rig.tick(2 * minute)
  await started(rig).poll()
  expect([nodeStates(rig)[0], await entryStates(rig)]).toEqual(['inactive', ['superseded', 'made']])
  const forGood = await drain(rig)
  rig.tick(60 * minute)
  await started(rig).poll()
  expect(nodeStates(rig)[0]).toBe('inactive')
  const { status } = await rig.tool('undo_change', { change_id: forGood.change_id, reason: 'well' })
  expect([status, nodeStates(rig)[0]]).toEqual([200, 'active'])
})

test('what cannot be undone yet is tried again, and told once', async () => {
  const rig = await openToolRig()
  const duties = started(rig)
  await drain(rig)
  await set(rig, 'active', { duration: 60 })
  await drain(rig, { destination: second })
  rig.tick(minute)
  await duties.poll()
  await duties.poll()
  expect(nodeStates(rig)).toEqual(['active', 'inactive'])
  expect(rig.logged).toEqual([
    {
      level: 'warn',
      message: 'a temporary change has expired, but cannot be undone yet',
      fields: expect.objectContaining({ code: 'last_active_node' }) as unknown,
    },
  ])
  await set(rig, 'active', { destination: second })
  rig.tick(minute)
  await duties.poll()
  expect(nodeStates(rig)).toEqual(['inactive', 'active'])
})

test.each(['made', 'unconfirmed'] as const)(
  'what a crash has left half made is found out by the state of its target: %s',
  async (state) => {
    const rig = await openToolRig()
    const { setState } = rig.engine.dispatcher
    rig.engine.dispatcher.setState = async (...given) => {
      if (state === 'made') await setState(...given)
      throw new Error('the process ends here')
    }
    expect((await set(rig, 'inactive')).status).toBe(500)
    rig.engine.dispatcher.setState = setState
    // Until it is settled no other change of the node knows what it would come back to.
    expect((await set(rig, 'probing')).code).toBe('change_under_way')
    rig.tick(30_000)
    await started(rig).poll()
    expect(await entryStates(rig)).toEqual([state])
    expect((await set(rig, 'probing')).status).toBe(200)
  },
)

test('a crash between the undoing and its entry leaves a change that is undone once more', async () => {
  const rig = await openToolRig()
  const { change_id } = await drain(rig)
  const given = { change_id, reason: 'audio is back' }
  const { setState } = rig.engine.dispatcher
  let repaired: (() => Promise<unknown>) | undefined
  rig.engine.dispatcher.setState = async (...all) => {
    const result = await setState(...all)
    repaired = await failing(rig.store, 'UPDATE', 'change_entry')
    return result
  }
  expect((await rig.tool('undo_change', given)).status).toBe(500)
  rig.engine.dispatcher.setState = setState
  await repaired?.()
  expect([nodeStates(rig)[0], await entryStates(rig)]).toEqual(['active', ['made']])
  rig.tick(30_000)
  expect((await rig.tool('undo_change', given)).data<Made>()).toMatchObject({ changed: true })
  expect([nodeStates(rig)[0], await entryStates(rig)]).toEqual(['active', ['undone']])
})

test('the restart of a process that was killed while it made a change waits for nothing of it', async () => {
  const rig = await openToolRig()
  const { setState } = rig.engine.dispatcher
  // It never comes back from there.
  const [begun, never] = [deferred(), new Promise<never>(() => undefined)]
  rig.engine.dispatcher.setState = () => {
    begun.resolve()
    return never
  }
  void set(rig, 'inactive')
  await begun.promise
  rig.engine.dispatcher.setState = setState
  expect((await set(rig, 'inactive')).status).toBe(409)

  const next = started(rig)
  await next.begin()
  await next.poll()
  expect([nodeStates(rig)[0], await entryStates(rig)]).toEqual(['active', ['unconfirmed']])
  expect((await set(rig, 'inactive')).data<Made>()).toMatchObject({ changed: true })
})

describe.runIf(hasPostgres)('changes of several instances', () => {
  test('of all instances one undoes a change whose time is over, once', async () => {
    const { open } = await sharedDatabase()
    const stores = [await open(), await open(), await open()]
    let now = 1_000_000
    const [process, ...others] = stores.map((store) => processOn(store, () => now))
    if (process === undefined) throw new Error('no node')
    const changes = 20
    const keys: string[] = []
    for (let number = 1; number <= changes; number += 1) keys.push(await process.suspend(number))
    now += minute
    await Promise.all([process, ...others].map(({ duties }) => duties.poll()))
    await Promise.all([process, ...others].map(({ duties }) => duties.poll()))
    for (const uuid of keys) expect((await process.keys.byUuid(uuid, null))?.suspendedAt).toBeNull()
    const ended = await readColumn(process.store, 'SELECT state FROM change_entry')
    expect(ended).toEqual(keys.map(() => 'expired'))
    const told = await readColumn<string>(process.store, 'SELECT change_id FROM audit_entry')
    expect(told.toSorted()).toEqual(keys.toSorted())
  })
})

function processOn(store: Store, now: () => number) {
  const keys = new KeyStore(store)
  const audit = new AuditLog(store, () => undefined)
  const settings = { reservedNetworks: [], ownPlaces: nowhere, hasMediaRelay: false }
  const tenants = { clear: () => undefined }
  const world = {
    store,
    kinds,
    keys,
    tenants,
    randomBytes,
    now,
    settings,
    engine: testEngine(),
    ocs: undefined,
  }
  const duties = new ChangeDuties({
    ...world,
    audit,
    newCorrelationId: () => 'c',
    log: () => undefined,
  })
  /** The change is named as the key. */
  const suspend = async (number: number): Promise<string> => {
    const body = newKeyBody.parse({ name: `key ${number}` })
    const { key } = await issueKey(world, body, consoleGrantor)
    await keys.setSuspension(key, { at: now(), by: 'user:ada' })
    const state = (at: number | null, by: string | null) =>
      JSON.stringify({ suspended_at: at, suspended_by: by, revoked_at: null })
    const entry = changeEntry({
      change_id: key.uuid,
      at: now(),
      tool: 'suspend_api_key',
      scopes: '["keys:write"]',
      target_kind: 'api_key',
      target_id: key.uuid,
      state_before: state(null, null),
      state_after: state(now(), 'user:ada'),
      expires_at: now() + minute,
    })
    await new ChangeStore(store).insert(entry)
    return key.uuid
  }
  return { store, keys, duties, suspend }
}
