/** `set_trunk_state` and `set_customer_limits`: tried, made, and undone. */
import { expect, test } from 'vitest'
import { openToolRig } from '../../../support/tools-rig.ts'

const reason = 'an incident'

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
