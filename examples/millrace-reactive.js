// Only for this folder, as millrace.js is: `import … from 'millrace/reactive'` in an example ends here.
export * from '../dist/reactive/index.js'
