import { expect, test } from 'vitest'
import { allTools } from '../../../control/agents/catalog/index.ts'
import { deniedCall, endedCall, liveCall, openToolRig } from '../../support/tools-rig.ts'
import { readRows } from '../../support/stored.ts'

/** The rows of the tenant acme, under every argument by which a tool may ask for it. */
const attempts: readonly object[] = [
  {},
  ...[liveCall, endedCall, deniedCall].map((call_uuid) => ({ call_uuid })),
  ...['acme key', 'acme phone'].flatMap((name) => [{ name }, { identifier: name }]),
  ...[1, 2, 3, 4, 5, 6].flatMap((id) => [{ key_id: id }, { setId: id }, { customer: id }]),
  { customer: 'acme customer' },
  { number: '4930', rate_plan: 'acme plan' },
  { number: '4930', customer: 1 },
  { number: '4930' },
  { search: 'acme' },
  ...['active', 'inactive', 'probing'].map((state) => ({
    state,
    setId: 1,
    destination: 'sip:10.0.0.2:5060;transport=udp',
  })),
]

test(
  'a tenant sees and changes nothing of another one through any tool',
  { timeout: 60_000 },
  async () => {
    const rig = await openToolRig()
    const ofAcme = { tenant_scope: 'tenant', tenant_slug: 'acme' }
    await rig.key({ name: 'acme key', ...ofAcme })
    await rig.key({ name: 'acme phone', kind: 'pbx', ...ofAcme })
    const foreign = await rig.key({ name: 'foreign', tenant_scope: 'tenant', tenant_slug: 'other' })
    const ended: string[] = []
    rig.engine.calls.hangUp = (uuid) => {
      ended.push(uuid)
      return 'ending'
    }
    const stored = async () =>
      JSON.stringify([
        await readRows(rig.store, 'SELECT name, is_active, revoked_at FROM application_key'),
        rig.engine.dispatcher.status(),
      ])
    const before = await stored()
    for (const { name } of allTools)
      for (const given of attempts) {
        const { text, status } = await rig.tool(name, given, foreign)
        if (status === 429) rig.tick(60_000)
        // The text that a refusal quotes was in the arguments, and so was what the tenant's own
        // audit log has.
        const shown = status === 200 && name !== 'search_audit' ? text : ''
        expect([
          name,
          given,
          /acme|10\.0\.0\.|4930100|1111-4111|2222-4222/.exec(shown)?.[0],
        ]).toEqual([name, given, undefined])
      }
    expect(ended).toEqual([])
    expect(await stored()).toBe(before)
  },
)
