/** `set_trunk_state` and `set_customer_limits`: tried, made, and undone. */
import { expect, test } from 'vitest'
import { openToolRig, type ToolRig } from '../../../support/tools-rig.ts'

interface Made {
  readonly change_id: string
  readonly effect: string
  readonly changed: boolean
}

const reason = 'an incident'

/** What the API shows of these two. */
async function shown(rig: ToolRig) {
  const data = async (path: string) => {
    const answer = await rig.request(`/api/v1${path}`, { token: rig.root })
    const { updated_at: _, ...rest } = answer.data<Readonly<Record<string, unknown>>>()
    return rest
  }
  return { carrier: await data('/routing/carriers/1'), customer: await data('/customers/1') }
}

async function openRig() {
  const rig = await openToolRig()
  const gateways = [{ host: '10.0.0.9', netmask: 32 }]
  const carrier = await rig.request('/api/v1/routing/carriers', {
    token: rig.root,
    body: {
      name: 'north',
      tenant: 'acme',
      gateways,
      direction: 'both',
      payer: 'from_number',
      auth: { type: 'digest', username: 'us', password: 'trunk password' },
    },
  })
  expect([carrier.status, carrier.text]).toEqual([201, carrier.text])
  return rig
}

const changes: readonly [tool: string, given: object, effect: RegExp][] = [
  [
    'set_trunk_state',
    { carrier: 'north', state: 'inactive' },
    /^The carrier "north" gets no new calls: /,
  ],
  [
    'set_customer_limits',
    { customer: 'acme customer', credit_limit: '5', max_concurrent_calls: 3 },
    /may owe 5\.00, was 0\.00; calls at once 3, was \d+\.$/,
  ],
]

test.each(changes)(
  'a dry run of %s changes nothing, and undo_change restores everything',
  async (tool, given, effect) => {
    const rig = await openRig()
    const before = await shown(rig)
    const dry = (await rig.tool(tool, { ...given, reason, dry_run: true })).data<Made>()
    expect(dry).toMatchObject({ changed: true, change_id: null })
    expect(dry.effect).toMatch(effect)
    expect(await shown(rig)).toEqual(before)
    const made = (await rig.tool(tool, { ...given, reason })).data<Made>()
    expect(made.effect).toBe(dry.effect)
    expect(await shown(rig)).not.toEqual(before)
    const again = (await rig.tool(tool, { ...given, reason })).data<Made>()
    expect(again).toMatchObject({ changed: false, change_id: null })
    const undone = await rig.tool('undo_change', { change_id: made.change_id, reason })
    expect([undone.status, undone.text]).toEqual([200, undone.text])
    expect(await shown(rig)).toEqual(before)
  },
)

test.each(changes)(
  '%s is refused to another tenant, and without its scopes',
  async (tool, given) => {
    const rig = await openRig()
    const before = await shown(rig)
    const stranger = await rig.key({ tenant_scope: 'tenant', tenant_slug: 'other' })
    const refused = await rig.tool(tool, { ...given, reason }, stranger)
    expect([
      refused.status,
      /mean|acme/.exec(refused.text.replace(JSON.stringify(given), ''))?.[0],
    ]).toEqual([400, tool === 'set_trunk_state' ? undefined : 'acme'])
    const lacking = await rig.key({ scopes: ['mcp:*', 'carriers:read', 'customers:*'] })
    expect((await rig.tool(tool, { ...given, reason }, lacking)).status).toBe(403)
    expect(await shown(rig)).toEqual(before)
  },
)

test('a credit limit counts from the next call on, and a change without a limit is refused', async () => {
  const rig = await openRig()
  const given = { customer: 1, credit_limit: '5.00', duration: 3_600, reason }
  const { status } = await rig.tool('set_customer_limits', given)
  expect(status).toBe(200)
  expect(rig.ocs.balanceOf(1)?.availableMicros).toBe(15_000_000n)
  const nothing = await rig.tool('set_customer_limits', { customer: 1, reason })
  expect([nothing.status, nothing.text]).toEqual([
    400,
    expect.stringContaining('at least one limit'),
  ])
})

test('the live calls of a trunk are those of its id: another tenant may have a trunk of the same name', async () => {
  const rig = await openRig()
  const [call] = rig.engine.activeCalls
  if (call === undefined) throw new Error('there is no live call')
  // The rig counts by id; a record has the name.
  rig.engine.activeCalls.push({ ...call, carrier: 'north' }, { ...call, carrier: '1' })
  const given = { carrier: 'north', state: 'inactive', reason, dry_run: true }
  const told = await rig.tool('set_trunk_state', given)
  expect(told.data<{ affected: unknown }>().affected).toEqual({ live_calls: 1 })
})
