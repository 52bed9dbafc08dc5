/** The kinds of alert rules as people call them. */
import type { AlertRule } from '../api/views.ts'

export const alertKindWords: Readonly<Record<AlertRule['on'], string>> = {
  node_down: 'PBX node out of service',
  carrier_down: 'carrier out of service',
  registration_lost: 'registration lost',
  instance_lost: 'instance lost',
  asr_below: 'few calls answered (ASR)',
  mos_below: 'bad quality of calls (MOS)',
  spend_above: 'much spent',
  balance_below: 'low balance',
  payment_not_credited: 'payment not credited',
  certificate_expiring: 'certificate expires',
  disk_low: 'disk nearly full',
  replication_lag: 'standby of the database behind',
  webhook_failing: 'webhook not delivered',
  finding_opened: 'something unusual (finding)',
}
