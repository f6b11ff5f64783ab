// Only for this folder, as millrace.js is: `import … from 'millrace/testing'` in an example ends here.
export * from '../dist/testing/index.js'
