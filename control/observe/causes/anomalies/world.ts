/** What the search for anomalies looks at, and for which tenant. */
import type { EnginePort } from '../../../../schema/contracts/engine-port.ts'
import type { OcsPort } from '../../../../schema/contracts/ocs.ts'
import type { Store } from '../../../../schema/open.ts'
import type { AskedNodes } from '../../../nodes/other-nodes.ts'
import type { Reports } from '../../../reports/reports.ts'

export interface AnomalyWorld {
  readonly store: Store
  readonly reports: Pick<Reports, 'findUnusual'>
  readonly engine: EnginePort
  /** Undefined: another system charges. */
  readonly ocs: Pick<OcsPort, 'balanceOf'> | undefined
  readonly elsewhere?: AskedNodes | undefined
  readonly tenantId: number | null
  /** The only SIP domain whose keys are looked at; null: all. */
  readonly domain: string | null
  /** Yields to the event loop. */
  readonly pause: () => Promise<void>
}

/** Milliseconds UTC; `before` is exclusive. */
export interface Span {
  readonly from: number
  readonly before: number
}
