/** All tools, in the order in which clients list them: first those of SPECIFICATION.md §4.4. */
import type { Tool } from '../tool.ts'
import { hangUpCall, listActiveCalls } from './call-tools.ts'
import { searchAudit } from './causes/audit-tools.ts'
import { findAnomalies } from './causes/find-anomalies.ts'
import { getLedger, listCustomers } from './causes/customer-tools.ts'
import { getKeyActivity, getNodeHistory, listTrunks } from './causes/history-tools.ts'
import { describeTool } from './describe-tool.ts'
import { reloadDispatchers, setDispatcherState } from './changes/dispatcher-state.ts'
import { resumeApiKey, revokeSbcApiKey, suspendApiKey } from './changes/key-state.ts'
import { setCustomerLimits } from './changes/customer-limits.ts'
import { banAddress } from './changes/sip-bans.ts'
import { setTrunkState } from './changes/trunk-state.ts'
import { listSpendGuards, removeSpendGuard, setSpendGuard } from './changes/spend-guards.ts'
import { undoChange } from './changes/undo.ts'
import { getDispatcherStatus, listSbcEndpoints } from './dispatcher-tools.ts'
import { explainCall } from './explain-call.ts'
import { getCustomerBalance, lookupRate } from './money-tools.ts'
import { listProposals, proposeChange } from './proposal-tools.ts'
import { getCall, searchCdrs } from './record-tools.ts'
import { listSbcApiKeys } from './sbc-key-tools.ts'
import { simulateCall } from './simulate-call.ts'
import { listNodes } from './node-tools.ts'
import { summarizeCalls } from './summarize-calls.ts'
import { getTelemetry } from './telemetry-tools.ts'
import { getApiKeyStatus, listApiKeys } from './tenant-key-tools.ts'

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
  searchCdrs,
  explainCall,
  simulateCall,
  getTelemetry,
  listNodes,
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
]
