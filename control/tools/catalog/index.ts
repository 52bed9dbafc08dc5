/** All tools, in the order in which clients list them: first those of SPECIFICATION.md §4.4. */
import type { Tool } from '../tool.ts'
import { hangUpCall, listActiveCalls } from './call-tools.ts'
import {
  getDispatcherStatus,
  listSbcEndpoints,
  reloadDispatchers,
  setDispatcherState,
} from './dispatcher-tools.ts'
import { describeTool } from './describe-tool.ts'
import { explainCall } from './explain-call.ts'
import { getCustomerBalance, lookupRate } from './money-tools.ts'
import { getCall, searchCdrs } from './record-tools.ts'
import { listSbcApiKeys, revokeSbcApiKey } from './sbc-key-tools.ts'
import { simulateCall } from './simulate-call.ts'
import { listNodes } from './node-tools.ts'
import { getTelemetry } from './telemetry-tools.ts'
import { getApiKeyStatus, listApiKeys } from './tenant-key-tools.ts'

export const allTools: readonly Tool[] = [
  ...[listSbcApiKeys, revokeSbcApiKey, listApiKeys, getApiKeyStatus],
  ...[getDispatcherStatus, listSbcEndpoints, setDispatcherState, reloadDispatchers],
  ...[listActiveCalls, getCall, searchCdrs, explainCall, simulateCall],
  ...[getTelemetry, listNodes, getCustomerBalance, lookupRate],
  ...[hangUpCall, describeTool],
]
