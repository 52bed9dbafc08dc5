/** A wrong name is answered with the nearest one, of those that the credential may see. */
import { expect, test } from 'vitest'
import { connectClient, eras, textOf } from '../../support/mcp-client.ts'
import { openToolRig } from '../../support/tools-rig.ts'

const ofTenant = (slug: string) => ({ tenant_scope: 'tenant', tenant_slug: slug })

/** The wrong name, and what is offered: of the tenant acme. */
const slips: readonly [tool: string, given: Record<string, unknown>, offer: RegExp][] = [
  ['get_customer_balance', { customer: 'acme custmer' }, /Did you mean "acme customer"\?/],
  ['get_customer_balance', { customer: 'ACME' }, /Did you mean "acme customer"\?/],
  ['lookup_rate', { number: '49', rate_plan: 'acme pln' }, /Did you mean "acme plan"\?/],
  ['revoke_sbc_api_key', { identifier: 'acme kye' }, /Did you mean "acme key"\?/],
  ['get_api_key_status', { name: 'acme fone' }, /Did you mean "acme phone"\?/],
  [
    'set_dispatcher_state',
    { state: 'inactive', setId: 1, destination: 'sip:10.0.0.3:5060' },
    /Did you mean "sip:10\.0\.0\.[12]:5060;transport=udp"\?/,
  ],
  ['search_cdrs', { nubmer: '1' }, /did you mean "number"\?/],
]

async function rigWithKeys() {
  const rig = await openToolRig()
  await rig.key({ name: 'acme key', ...ofTenant('acme') })
  await rig.key({ name: 'acme phone', kind: 'pbx', ...ofTenant('acme') })
  return rig
}

test.each(eras)('a tool, or a name in its arguments, is offered to a %s client', async (era) => {
  const rig = await rigWithKeys()
  const own = await connectClient(rig.app, await rig.key(ofTenant('acme')), era)
  for (const [name, given, offer] of slips) {
    const refusal = await own.callTool({ name, arguments: given })
    expect([name, refusal.isError, textOf(refusal)]).toEqual([
      name,
      true,
      expect.stringMatching(offer),
    ])
  }
  await expect(own.callTool({ name: 'search_crds' })).rejects.toThrow(/mean "search_cdrs"\?/)
  await expect(own.getPrompt({ name: 'triage_incidents' })).rejects.toThrow(/"triage_incident"\?/)
  await own.close()
})

test('no name of another tenant is offered, nor that there is one', async () => {
  const rig = await rigWithKeys()
  const stranger = await rig.key(ofTenant('other'))
  const ask = async (name: string, given: object) => {
    const { body } = await rig.tool(name, given, stranger)
    const { request_id: _, ...told } = body as { readonly request_id: string }
    return JSON.stringify(told)
  }
  for (const [name, given] of slips.filter(([name]) => name !== 'search_cdrs')) {
    const text = await ask(name, given)
    expect([
      name,
      /mean/.exec(text)?.[0],
      /\\"acme (customer|plan|key|phone)/.exec(text)?.[0],
    ]).toEqual([name, undefined, undefined])
  }
  const nameless = (text: string) => text.replaceAll(/acme customer|no such one/g, '')
  const there = await ask('get_customer_balance', { customer: 'acme customer' })
  const nowhere = await ask('get_customer_balance', { customer: 'no such one' })
  expect(nameless(there)).toBe(nameless(nowhere))
})
