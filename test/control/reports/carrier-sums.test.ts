import { expect, test } from 'vitest'
import { openReportRig, reportPath } from '../../support/report-rig.ts'

const path = reportPath.replace('cdrs', 'carriers')

async function open() {
  const rig = await openReportRig()
  const sums = (query = rig.day, token = rig.token) => rig.request(`${path}?${query}`, { token })
  return { ...rig, sums }
}

test('ASR and ACD are those of the calls to each carrier; those from it stand beside', async () => {
  const { store, sums } = await open()
  const out = { direction: 'outbound', carrier: 'telco' } as const
  await store({ ...out, billsec: 60 })
  await store({ ...out, billsec: 30 })
  await store({ ...out, disposition: 'BUSY', answeredAt: null, billsec: 0 })
  await store({ direction: 'inbound', carrier: 'telco', billsec: 10 })
  await store({ direction: 'outbound', carrier: 'other', disposition: 'FAILED', billsec: 0 })
  await store({ carrier: null })
  expect((await sums()).data()).toEqual([
    {
      carrier: 'other',
      outbound: { calls: 1, answered: 0, billsec: 0, asr_percent: 0, acd_seconds: null },
      inbound: { calls: 0, answered: 0, billsec: 0, asr_percent: null, acd_seconds: null },
    },
    {
      carrier: 'telco',
      outbound: { calls: 3, answered: 2, billsec: 90, asr_percent: 66.7, acd_seconds: 45 },
      inbound: { calls: 1, answered: 1, billsec: 10, asr_percent: 100, acd_seconds: 10 },
    },
  ])
})

test('a tenant sees what its own calls came to', async () => {
  const { store, sums, tenant, key } = await open()
  const tenantId = await tenant('acme')
  await store({ tenantId, direction: 'outbound', carrier: 'telco' })
  await store({ tenantId: null, direction: 'outbound', carrier: 'telco' })
  await store({ tenantId: null, direction: 'outbound', carrier: 'hidden' })
  const token = await key({ tenant_scope: 'tenant', tenant_slug: 'acme' })
  const found = (await sums(undefined, token)).data()
  expect(found).toMatchObject([{ carrier: 'telco', outbound: { calls: 1 } }])
})
