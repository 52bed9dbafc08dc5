/** What the API consists of, besides what it needs from outside. */
import type { ConsoleFiles } from './console/console-files.ts'
import type { WithOthers } from './nodes/other-nodes.ts'
import type { Platform } from './http/platform.ts'
import type { Reports } from './reports/reports.ts'
import type { Webhooks } from './webhooks/webhooks.ts'

export interface ControlDeps extends Platform, WithOthers {
  readonly webhooks: Webhooks
  readonly reports: Reports
  /** Undefined: it has not been built. */
  readonly console: ConsoleFiles | undefined
}
