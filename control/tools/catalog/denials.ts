/** Why the platform refuses calls, in words. */

/** `denial_code` of a record → reason and advice. */
const denials: Readonly<Record<string, readonly [why: string, advice: string]>> = {
  insufficient_funds: [
    'The customer has insufficient funds.',
    'get_customer_balance shows the balance. A person can top up the wallet.',
  ],
  media_timeout: [
    'No audio came from either party for a while, so the platform ended the call as of its last packet.',
    'MEDIA_TIMEOUT_SECONDS says how long a call may be silent.',
  ],
  customer_inactive: ['The customer is inactive.', 'A person must activate it again.'],
  destination_blocked: [
    'A blocked prefix or route covers this destination.',
    'lookup_rate shows whether the rate is blocked.',
  ],
  concurrent_limit: [
    'The customer reached its limit of concurrent calls.',
    'list_active_calls shows them.',
  ],
  cps_limit: [
    'The customer exceeded its limit of calls per second.',
    'Spread the calls over more time.',
  ],
  daily_spend_limit: [
    'The customer reached its daily spending limit.',
    'The limit resets at 00:00 UTC.',
  ],
  spend_guard: [
    'A spend guard stops calls to this number, or its cap is used up.',
    'list_spend_guards shows it, with its reason. remove_spend_guard takes it off.',
  ],
  unknown_caller: [
    'No customer owns the calling number, so the call has no payer.',
    'A person can add the number to a customer.',
  ],
  payer_of_other_tenant: [
    'The paying customer belongs to another tenant than the source of the call.',
    'Check which customer owns the calling number, or is set on the carrier or extension.',
  ],
  no_payer: [
    'The carrier has no customer, so the call has no payer.',
    'A person can set its customer, or set payer to from_number.',
  ],
  no_rate: ['The rate plan has no rate for this number.', 'lookup_rate confirms it.'],
  time_limit: ['It was a test call through a carrier, which ends by itself.', 'Nothing is wrong.'],
  max_call_seconds: ['The call reached the maximum duration of the customer.', 'Nothing is wrong.'],
  ocs_unreachable: ['The charging system did not answer in time.', 'Check the charging system.'],
  no_candidate: [
    'No node of the dispatcher set was in service.',
    'get_dispatcher_status shows the nodes.',
  ],
  node_limit: ['Every node reached its limit of calls.', 'get_dispatcher_status shows them.'],
  no_gateway: ['No carrier gateway was usable for this number.', 'Check the carriers and routes.'],
  carrier_limit: ['The carrier reached its limit of calls.', 'Raise the limit or wait.'],
  agent_limit: ['The AI agent reached its limit of calls.', 'Raise the limit or wait.'],
  unknown_source: [
    'The source is not a carrier, a node or a trusted address.',
    'If it is a carrier, a person can add it as a gateway.',
  ],
  unknown_extension: ['No phone is registered for this extension.', 'Check the registration.'],
  no_number: ['The request contains no number.', 'The caller must dial a number.'],
  malformed_number: [
    'The dialled text is not a telephone number.',
    'Only digits, *, # and a leading + are allowed. A number rule of the carrier may help.',
  ],
  unknown_name: [
    'The call is to a user name; only numbers can be called.',
    'A number rule of the carrier can map the name to a number.',
  ],
  unknown_agent: ['The AI agent does not exist or is inactive.', 'Check the agent.'],
  overload: ['The platform was overloaded.', 'get_telemetry shows its load.'],
  storage_unavailable: [
    'Records could not be stored.',
    'get_telemetry shows storage_available. The log names the disk or the file.',
  ],
  node_fenced: [
    'Another process had taken over the name of the node, so it took no new calls.',
    'list_nodes shows the nodes. A person must restart the node that says node_fenced in /readyz, and give each its own NODE_NAME.',
  ],
  draining: ['The process was stopping.', 'Nothing is wrong if it was restarted.'],
  loop: ['The call looped: it returned to this platform.', 'Check the routes of the node.'],
}

/** The reason in a sentence, and what to check; `code`: `denial_code` of a record. */
export const denialOf = (code: string | null): readonly [why: string, advice: string | null] =>
  code === null
    ? ['No phone of the extension can be called.', 'Check the registration.']
    : (denials[code] ?? [`The reason is ${code}.`, null])
