/** All operations of the API. A test fails for a route that is not described here. */
import type { Operations } from '../http/openapi/operation.ts'
import { accessOperations } from './access.ts'
import { changeOperations } from './changes.ts'
import { billingOperations } from './billing.ts'
import { causeOperations } from './causes.ts'
import { proposalOperations } from './proposals.ts'
import { routingOperations } from './routing.ts'
import { simulationOperations } from './simulation.ts'
import { systemOperations } from './system.ts'
import { spendGuardOperations } from './spend-guards.ts'
import { selfServiceOperations } from './self-service.ts'
import { recordingOperations } from './recordings.ts'
import { reportOperations } from './reports.ts'
import { telephonyOperations } from './telephony.ts'
import { toolOperations } from './tools.ts'
import { watchingOperations } from './watching.ts'
import { webhookOperations } from './webhooks.ts'

export const operations: Operations = {
  ...systemOperations,
  ...causeOperations,
  ...accessOperations,
  ...changeOperations,
  ...routingOperations,
  ...telephonyOperations,
  ...recordingOperations,
  ...reportOperations,
  ...watchingOperations,
  ...simulationOperations,
  ...billingOperations,
  ...spendGuardOperations,
  ...selfServiceOperations,
  ...webhookOperations,
  ...toolOperations,
  ...proposalOperations,
}
