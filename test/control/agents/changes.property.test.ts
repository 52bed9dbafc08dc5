/**
 * The rules for every tool that changes something: a dry run changes nothing, the call is in the
 * audit log with its reason and change_id, and undo_change brings every table back to what it was.
 * A new tool needs an example here.
 */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { allTools } from '../../../control/agents/catalog/index.ts'
import { isOnPostgres } from '../../support/on-sqlite.ts'
import { readColumn, readRow, readRows, runSql } from '../../support/stored.ts'
import { liveCall, openToolRig, type ToolRig } from '../../support/tools-rig.ts'

interface Example {
  /** Arguments besides the reason, of which each is another change. */
  readonly given: (rig: ToolRig) => Promise<readonly object[]> | readonly object[]
  readonly undo: 'restores' | 'none' | 'job'
}

const [first, second] = ['10.0.0.1', '10.0.0.2'].map((host) => `sip:${host}:5060;transport=udp`)

const states = (destination: string | undefined) =>
  ['inactive', 'probing', 'active'].map((state) => ({ state, setId: 1, destination }))

const guard = { customer: 'acme customer', prefix: '1900', action: 'block' }

const examples: Readonly<Record<string, Example>> = {
  set_dispatcher_state: { given: () => [...states(second), ...states(first)], undo: 'restores' },
  suspend_api_key: {
    given: () => ['leaked', 'phone'].map((identifier) => ({ identifier })),
    undo: 'restores',
  },
  resume_api_key: {
    given: () => ['suspended', 'phone'].map((identifier) => ({ identifier })),
    undo: 'restores',
  },
  set_trunk_state: {
    given: () => ['inactive', 'active'].map((state) => ({ carrier: 'acme trunk', state })),
    undo: 'restores',
  },
  set_customer_limits: {
    given: () => [
      { customer: 'acme customer', max_cps: 3 },
      { customer: 'acme customer', credit_limit: '5', max_daily_spend: '7.5' },
    ],
    undo: 'restores',
  },
  add_rate: {
    given: () => [
      { rate_plan: 'acme plan', prefix: '44', rate_per_minute: '0.12' },
      { customer: 'acme customer', prefix: '447', rate_per_minute: '0.2', connect_fee: '0.01' },
    ],
    undo: 'restores',
  },
  add_number: {
    given: () => [
      { customer: 'acme customer', number: '+4930199' },
      { customer: 'acme customer', number: '4930198' },
    ],
    undo: 'restores',
  },
  set_spend_guard: {
    given: () => [guard, { ...guard, action: 'cap', amount: '2' }, { ...guard, prefix: '88' }],
    undo: 'restores',
  },
  remove_spend_guard: {
    given: async (rig) => [{ guard_id: await guardOf(rig) }],
    undo: 'restores',
  },
  ban_address: {
    given: () => ['203.0.113.9', '2001:db8::9'].map((address) => ({ address })),
    undo: 'restores',
  },
  // A job that goes on after its call: `catalog/reratings.test.ts` waits for its end.
  rerate_calls: {
    given: () => [{ kind: 'sold', rate_plan: 'acme plan', from: '2025-12-01', to: '2026-01-02' }],
    undo: 'job',
  },
  revoke_sbc_api_key: { given: () => [{ identifier: 'leaked' }], undo: 'none' },
  hangup_call: { given: () => [{ call_uuid: liveCall }], undo: 'none' },
  reload_dispatchers: { given: () => [{}], undo: 'none' },
}

async function guardOf(rig: ToolRig): Promise<string> {
  const made = await rig.tool('set_spend_guard', { ...guard, prefix: '77', reason: 'of before' })
  return made.data<{ guard: { guard_id: string } }>().guard.guard_id
}

/** `undo_change` is the tool that the others are tried with. */
const changing = allTools.filter(
  ({ name, effect }) => (effect === 'changes' || effect === 'destroys') && name !== 'undo_change',
)

interface World {
  readonly rig: ToolRig
  /** Methods of the engine that change something, as they were called. */
  readonly performed: string[]
}

async function openWorld(): Promise<World> {
  const rig = await openToolRig()
  await rig.key({ name: 'leaked' })
  await rig.key({ name: 'phone', kind: 'pbx' })
  await rig.key({ name: 'suspended' })
  await runSql(
    rig.store,
    "UPDATE application_key SET suspended_at = 7, suspended_by = 'user:ada' WHERE name = 'suspended'",
  )
  const trunk = { name: 'acme trunk', tenant: 'acme', gateways: [{ host: '10.9.0.1' }] }
  await rig.request('/api/v1/routing/carriers', { token: rig.root, body: trunk })
  const performed: string[] = []
  const { engine } = rig
  noteCalls(engine, ['originate', 'spy', 'transfer', 'reloadRouting'], performed)
  noteCalls(engine.dispatcher, ['setState', 'reload'], performed)
  noteCalls(engine.calls, ['hangUp'], performed)
  noteCalls(engine.guard, ['ban', 'unban', 'endOperatorBan'], performed)
  noteCalls(engine.registrations, ['end', 'changed'], performed)
  return { rig, performed }
}

function noteCalls<T extends object>(of: T, names: readonly (keyof T & string)[], into: string[]) {
  for (const name of names) {
    const method = of[name] as (...given: unknown[]) => unknown
    const noted = (...given: unknown[]) => {
      into.push(name)
      return method(...given)
    }
    Object.assign(of, { [name]: noted })
  }
}

/** Tables that are written with every request, and beside a change. */
const ofRequests = ['audit_entry', 'sqlite_sequence']
const beside = [...ofRequests, 'change_entry', 'change_counter']
const volatile = ['updated_at', 'request_count', 'last_used_at']

/** Every row of every table, and the states of nodes. */
async function dump({ rig }: World, without = beside): Promise<Readonly<Record<string, unknown>>> {
  const { store, engine } = rig
  const names = await readColumn<string>(
    store,
    isOnPostgres
      ? "SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1"
      : "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY 1",
  )
  const tables: Record<string, unknown> = {
    nodes: engine.dispatcher.status(),
    bans: engine.guard.bans(),
  }
  for (const name of names.filter((each) => !without.includes(each))) {
    const rows = await readRows(store, `SELECT * FROM "${name}"`)
    const present = rows.filter((row) => !isHistory(name, row))
    tables[name] = present.map((row) => JSON.stringify(lasting(row))).toSorted()
  }
  return tables
}

/**
 * A spend guard that is not set any more explains the calls that it refused; what changes hold is
 * counted.
 */
const isHistory = (table: string, { ended_at, name }: Readonly<Record<string, unknown>>) =>
  (table === 'spend_guard' && ended_at !== null) ||
  (table === 'setting' && String(name).startsWith('change_states'))

const lasting = (row: Readonly<Record<string, unknown>>) =>
  Object.fromEntries(Object.entries(row).filter(([column]) => !volatile.includes(column)))

type Answer = { changed: boolean; change_id: string | null; dry_run: boolean; undo: string }

async function call({ rig }: World, name: string, given: object): Promise<Answer> {
  const answer = await rig.tool(name, { reason: 'to see what holds', ...given })
  expect([name, answer.status, answer.text]).toEqual([name, 200, answer.text])
  return answer.data<Answer>()
}

test('every tool that changes something has an example here', () => {
  const names = changing.map(({ name }) => name)
  expect(names.filter((name) => !(name in examples))).toEqual([])
  expect(names.length).toBeGreaterThan(6)
})

test.each(changing.map(({ name }) => name))(
  '%s: a dry run changes nothing, the call is audited, and undone exactly',
  async (name) => {
    const example = examples[name]
    if (example === undefined) throw new Error('no example')
    const world = await openWorld()
    const { rig, performed } = world
    const [given = {}] = await example.given(rig)
    performed.length = 0
    const all = await dump(world, ofRequests)
    const tried = await call(world, name, { ...given, dry_run: true })
    expect(tried).toMatchObject({ dry_run: true, changed: true, change_id: null })
    expect(await dump(world, ofRequests)).toEqual(all)
    expect(performed).toEqual([])

    const before = await dump(world)
    const made = await call(world, name, given)
    expect(made).toMatchObject({ dry_run: false, changed: true })
    const entry = 'SELECT action, reason, change_id FROM audit_entry ORDER BY id DESC LIMIT 1'
    expect(await readRow(rig.store, entry)).toEqual({
      action: `tool ${name}`,
      reason: 'to see what holds',
      change_id: made.change_id,
    })
    const after = await dump(world)
    // A tool that ends a call or loads tables is seen at the engine.
    expect(performed.length > 0 || JSON.stringify(after) !== JSON.stringify(before)).toBe(true)

    const undo = () => rig.tool('undo_change', { change_id: made.change_id, reason: 'undone' })
    if (example.undo === 'job') {
      await expect.poll(async () => (await undo()).data<Answer>().changed).toBe(true)
      const jobs = () => rig.tool('list_reratings')
      await expect.poll(async () => (await jobs()).text).toContain('"state":"undone"')
      return
    }
    const undone = await undo()
    if (example.undo === 'none') {
      expect([undone.status, undone.code]).toEqual([409, 'not_reversible'])
      expect([made.undo, await dump(world)]).toEqual(['It cannot be undone', after])
      return
    }
    expect([undone.status, undone.text]).toEqual([200, undone.text])
    expect(await dump(world)).toEqual(before)
    const audited = 'SELECT reason, change_id FROM audit_entry ORDER BY id DESC LIMIT 1'
    expect(await readRow(rig.store, audited)).toEqual({
      reason: 'undone',
      change_id: made.change_id,
    })
  },
)

test('any changes are undone from the last to the first, and then everything is as before', async () => {
  const names = changing
    .map(({ name }) => name)
    .filter((name) => examples[name]?.undo === 'restores')
  const step = fc.tuple(fc.constantFrom(...names), fc.nat(5), fc.boolean())
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 2, maxLength: 10 }), async (steps) => {
      const world = await openWorld()
      const given = new Map<string, readonly object[]>()
      for (const name of names) given.set(name, (await examples[name]?.given(world.rig)) ?? [])
      const before = await dump(world)
      const made: string[] = []
      for (const [name, index, isTried] of steps) {
        const choices = given.get(name) ?? []
        const asked = { ...choices[index % choices.length], reason: 'one of many' }
        if (isTried) await world.rig.tool(name, { ...asked, dry_run: true })
        const answer = await world.rig.tool(name, asked)
        // A key that is revoked, or the last node of its set: refused, and nothing has changed.
        if (answer.status !== 200) continue
        const { change_id: changeId } = answer.data<Answer>()
        if (changeId !== null) made.push(changeId)
      }
      for (const changeId of made.toReversed()) {
        const undone = await world.rig.tool('undo_change', { change_id: changeId, reason: 'back' })
        expect([undone.status, undone.text]).toEqual([200, undone.text])
      }
      expect(await dump(world)).toEqual(before)
    }),
    { numRuns: 12 },
  )
})
