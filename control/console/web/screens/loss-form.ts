/**
 * The fields of loss protection, which rate plans, customers and outbound routes share, in the
 * words of forms.
 */
export const lossForm = {
  names: ['loss_protection', 'min_margin'],
  labels: { loss_protection: 'Calls that leave too little', min_margin: 'Least margin' },
  hints: {
    loss_protection: 'By what the carrier is expected to take.',
    min_margin: 'A minute, such as 0.002; or of the price, such as 5%. Empty: no loss.',
  },
  words: {
    loss_protection: {
      '': 'as the next rules say',
      never: 'are let through',
      warn: 'are let through, and told of',
      refuse: 'are refused',
      strict: 'are refused, also where the cost is not known',
    },
  },
  when: { min_margin: ['loss_protection', 'warn', 'refuse', 'strict'] },
} as const
