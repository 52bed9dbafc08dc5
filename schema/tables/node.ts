/** The processes that serve from this database: `schema/nodes`. */
export interface NodeTable {
  name: string
  epoch: number
  install_id: string
  address: string
  /** Where it takes SIP requests of the other nodes; empty: nowhere yet. */
  sip_uri: string
  version: string
  state: 'starting' | 'serving' | 'draining' | 'stopped'
  live_calls: number
  started_at: number
  heartbeat_at: number
}
