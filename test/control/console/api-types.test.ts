import { expect, test } from 'vitest'
import { apiTypes } from '../../support/api-types.ts'
import { openControl } from '../../support/control.ts'
import { documentOf } from '../../support/documented.ts'

/** What the screens read; what these refer to follows. */
const used = [
  'Profile',
  'PageMeta',
  'Error',
  'Telemetry',
  'TelemetryHistory',
  'NodeHistory',
  'ActiveCall',
  'CallReport',
  'CallTrace',
  'CallStatus',
  'DispatcherSet',
  'Customer',
  'RatePlan',
  'Rate',
  'Price',
  'Wallet',
  'LedgerEntry',
  'ApplicationKey',
  'NewApplicationKey',
  'Carrier',
  'AuditEntry',
  'ProcessNode',
  'KeyUsage',
  'CarrierSums',
  'ExtensionDetails',
  'Settings',
  'Ban',
  'WebhookEndpoint',
  'WebhookEndpointWithSecret',
  'WebhookDelivery',
  'Simulation',
  'TestCall',
  'Proposal',
  'Change',
  'SpendGuard',
]
const path = 'control/console/web/api/api-types.ts'

test('the types of the console are those of the OpenAPI document', async () => {
  const { document } = documentOf((await openControl()).app)
  await expect(await apiTypes(document, used, path)).toMatchFileSnapshot(`../../../${path}`)
})
