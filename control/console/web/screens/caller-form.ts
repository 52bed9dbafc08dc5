/**
 * The fields about the caller that calls show, in the words of forms: extensions, customers, sets
 * and carriers share them.
 */
export const callerForm = {
  names: [
    'caller_identity.present',
    'caller_identity.allowed',
    'caller_identity.numbers',
    'caller_identity.otherwise',
    'caller_identity.forwarded',
    'caller_identity.emergency_number',
  ],
  labels: {
    'caller_identity.present': 'Number that is shown',
    'caller_identity.allowed': 'Numbers that may be shown',
    'caller_identity.numbers': 'Listed numbers',
    'caller_identity.otherwise': 'With another number',
    'caller_identity.forwarded': 'When forwarded or transferred',
    'caller_identity.emergency_number': 'Number of emergency calls',
  },
  hints: {
    'caller_identity.present': '',
    'caller_identity.allowed': 'A list, or any, is set by the platform.',
    'caller_identity.numbers': 'One a line: numbers, or the first digits of some.',
    'caller_identity.otherwise': '',
    'caller_identity.forwarded': '',
    'caller_identity.emergency_number': 'Empty: as other calls.',
  },
  words: {
    'caller_identity.present': {
      '': 'as the next rules say',
      own: 'the own number',
      extension: 'the digits of the extension',
      default: 'the default number of the customer',
      as_sent: 'the one in the call',
    },
    'caller_identity.allowed': {
      '': 'as the next rules say',
      owned: 'those of who pays',
      list: 'those, and the listed ones',
      any: 'any',
    },
    'caller_identity.otherwise': {
      '': 'as the next rules say',
      replace: 'the own number is shown',
      anonymous: 'no number is shown',
      refuse: 'the call is refused',
    },
    'caller_identity.forwarded': {
      '': 'as the next rules say',
      original: 'the first caller is shown',
      own: 'the own number is shown',
    },
  },
} as const
