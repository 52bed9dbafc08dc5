/** All tools, in the order in which clients list them: first those of SPECIFICATION.md §4.4. */
import { nouns } from '../../resources/nouns.ts'
import type { AnyDefinition } from '../../resources/resource.ts'
import type { Tool } from './tool.ts'
import { addNumber, addRate } from './additions.ts'
import { generalTools } from './general-tools.ts'
import { getCallLadder, hangUpCall, listActiveCalls, simulateCall } from './calls.ts'
import { listChanges, listProposals, proposeChange, searchAudit, undoChange } from './changes.ts'
import { describeTool, findAnomalies, getTelemetry, listInstances } from './platform.ts'
import { listRegistrations, listRoutes } from './routing.ts'
import {
  getCustomerBalance,
  getLedger,
  listCustomers,
  lookupRate,
  setCustomerLimits,
} from './customers.ts'
import {
  getApiKeyStatus,
  getKeyActivity,
  listApiKeys,
  listSbcApiKeys,
  resumeApiKey,
  revokeSbcApiKey,
  suspendApiKey,
} from './keys.ts'
import {
  getDispatcherStatus,
  getNodeHistory,
  listSbcEndpoints,
  reloadDispatchers,
  setDispatcherState,
} from './dispatcher.ts'
import { listTrunks, setTrunkState } from './trunks.ts'
import { banAddress, listBans, listSpendGuards, removeSpendGuard, setSpendGuard } from './guards.ts'
import { listReratings, rerateCalls } from './reratings.ts'
import { explainCall, getCall, searchCdrs, summarizeCalls, summarizeMargins } from './records.ts'

export const allTools: readonly Tool[] = [
  listSbcApiKeys,
  revokeSbcApiKey,
  listApiKeys,
  getApiKeyStatus,
  getDispatcherStatus,
  listSbcEndpoints,
  setDispatcherState,
  reloadDispatchers,
  listActiveCalls,
  getCall,
  summarizeCalls,
  summarizeMargins,
  searchCdrs,
  explainCall,
  simulateCall,
  getTelemetry,
  listInstances,
  getCustomerBalance,
  lookupRate,
  findAnomalies,
  getNodeHistory,
  listTrunks,
  getKeyActivity,
  searchAudit,
  listCustomers,
  getLedger,
  setSpendGuard,
  removeSpendGuard,
  listSpendGuards,
  banAddress,
  hangUpCall,
  describeTool,
  suspendApiKey,
  resumeApiKey,
  undoChange,
  setTrunkState,
  setCustomerLimits,
  proposeChange,
  listProposals,
  listChanges,
  getCallLadder,
  listRoutes,
  listRegistrations,
  listBans,
  addRate,
  addNumber,
  rerateCalls,
  listReratings,
  ...Object.values<AnyDefinition>(nouns).flatMap(generalTools),
]
